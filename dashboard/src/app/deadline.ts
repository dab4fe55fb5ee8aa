import { ApiError } from "../api/client";

/** A request that may take so long and no longer: a connection that hangs tells nothing at all. */
export async function within<T>(
  limitMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const giveUp = () => own.abort();
  signal.addEventListener("abort", giveUp);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    giveUp();
  }, limitMs);
  try {
    return await work(own.signal);
  } catch (error) {
    throw late ? new ApiError(0, "No answer", `the server did not answer within ${limitMs / 1000} seconds`) : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
  }
}
