//! The messages of remote write as `prost` has them: an encoder that shares nothing with the parser. Exemplars and the
//! buckets of histograms are there to be skipped.

/// `prometheus.WriteRequest` and what it has.
pub mod v1 {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        pub timeseries: Vec<TimeSeries>,
        #[prost(message, repeated, tag = "3")]
        pub metadata: Vec<MetricMetadata>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct MetricMetadata {
        #[prost(int32, tag = "1")]
        pub kind: i32,
        #[prost(string, tag = "2")]
        pub metric_family_name: String,
        #[prost(string, tag = "4")]
        pub help: String,
        #[prost(string, tag = "5")]
        pub unit: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        pub labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        pub samples: Vec<super::Sample>,
        #[prost(message, repeated, tag = "3")]
        pub exemplars: Vec<Exemplar>,
        #[prost(message, repeated, tag = "4")]
        pub histograms: Vec<super::Histogram>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Label {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub value: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Exemplar {
        #[prost(message, repeated, tag = "1")]
        pub labels: Vec<Label>,
        #[prost(double, tag = "2")]
        pub value: f64,
        #[prost(int64, tag = "3")]
        pub timestamp: i64,
    }
}

/// `io.prometheus.write.v2.Request` and what it has.
pub mod v2 {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Request {
        #[prost(string, repeated, tag = "4")]
        pub symbols: Vec<String>,
        #[prost(message, repeated, tag = "5")]
        pub timeseries: Vec<TimeSeries>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct TimeSeries {
        #[prost(uint32, repeated, tag = "1")]
        pub labels_refs: Vec<u32>,
        #[prost(message, repeated, tag = "2")]
        pub samples: Vec<super::Sample>,
        #[prost(message, repeated, tag = "3")]
        pub histograms: Vec<super::Histogram>,
        #[prost(message, optional, tag = "5")]
        pub metadata: Option<Metadata>,
        #[prost(int64, tag = "6")]
        pub created_timestamp: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Metadata {
        #[prost(int32, tag = "1")]
        pub kind: i32,
        #[prost(uint32, tag = "3")]
        pub help_ref: u32,
        #[prost(uint32, tag = "4")]
        pub unit_ref: u32,
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Sample {
    #[prost(double, tag = "1")]
    pub value: f64,
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Histogram {
    #[prost(oneof = "Count", tags = "1, 2")]
    pub count: Option<Count>,
    #[prost(double, tag = "3")]
    pub sum: f64,
    #[prost(sint32, tag = "4")]
    pub schema: i32,
    #[prost(sint64, repeated, tag = "12")]
    pub positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    pub timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum Count {
    #[prost(uint64, tag = "1")]
    Integer(u64),
    #[prost(double, tag = "2")]
    Float(f64),
}

/// The same series as a message of 2.0.
pub fn as_v2(request: &v1::WriteRequest) -> v2::Request {
    let mut symbols = vec![String::new()];
    let mut refer = |text: &str| {
        let found = symbols.iter().position(|symbol| symbol == text);
        found.unwrap_or_else(|| {
            symbols.push(text.to_owned());
            symbols.len() - 1
        }) as u32
    };
    let timeseries = request
        .timeseries
        .iter()
        .map(|series| v2::TimeSeries {
            labels_refs: series
                .labels
                .iter()
                .flat_map(|label| [refer(&label.name), refer(&label.value)])
                .collect(),
            samples: series.samples.clone(),
            histograms: series.histograms.clone(),
            metadata: None,
            created_timestamp: 0,
        })
        .collect();
    v2::Request { symbols, timeseries }
}
