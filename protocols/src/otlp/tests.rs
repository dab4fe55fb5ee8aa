//! Behaviour of the parser of OTLP metrics, sentence by sentence of the contract.
