/** Small things that show a value: times, states, snippets, secrets, meters. */
import { Fragment, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { formatAgo, formatTime, zoneName } from "../app/format";
import { useNow } from "../app/load";
import { useZone } from "../app/preferences";
import { Button } from "./button";

/** A moment, in the zone that the user chose. */
export function Time({ at }: { at: string | null }) {
  const zone = useZone();
  if (at === null) return <span class="muted">never</span>;
  const ms = Date.parse(at);
  // Where a cell is narrow, a line ends between day and time.
  const [day, clock] = formatTime(ms, zone).replace(/\.\d+$/, "").split(" ");
  return (
    <time class="time" dateTime={at} title={`${at} (${zoneName(zone, ms)})`}>
      <span class="nowrap">{day}</span> <span class="nowrap">{clock}</span>
    </time>
  );
}

/** How long ago, or in how long. */
export function Ago({ at, none = "never" }: { at: string | null; none?: string }) {
  const now = useNow(5000);
  const zone = useZone();
  if (at === null) return <span class="muted">{none}</span>;
  const ms = Date.parse(at);
  return (
    <time class="time" dateTime={at} title={`${formatTime(ms, zone)} ${zoneName(zone, ms)}`}>
      {formatAgo(ms, Math.max(now, Date.now()))}
    </time>
  );
}

export type Tone = "ok" | "bad" | "warn" | "idle" | "accent";

/** A state in a word, with a mark whose shape also tells it. */
export function Pill({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`pill ${tone}`}>
      <span class="pill-mark" aria-hidden="true" />
      {children}
    </span>
  );
}

interface CopyProps {
  text: string;
  label?: string;
  onCopied?: () => void;
}

export function CopyButton({ text, label = "Copy", onCopied }: CopyProps) {
  const [copied, setCopied] = useState<"no" | "yes" | "failed">("no");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied("yes");
      onCopied?.();
    } catch {
      setCopied("failed");
    }
    setTimeout(() => setCopied("no"), 2000);
  };
  return (
    <>
      <Button icon={copied === "yes" ? "check" : "copy"} small onClick={() => void copy()} class="copy">
        {copied === "yes" ? "Copied" : copied === "failed" ? "Select it by hand" : label}
      </Button>
      <span class="visually-hidden" role="status">
        {copied === "yes" ? "Copied to the clipboard" : ""}
      </span>
    </>
  );
}

/** Code to copy. Scrolls inside itself; focusable, so that the keyboard can scroll it too. */
export function Snippet({ title, code }: { title: string; code: string }) {
  return (
    <figure class="snippet">
      <figcaption>
        <span>{title}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={title}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

/** A value that is shown this once. */
export function SecretOnce({ what, value, onCopied }: { what: string; value: string; onCopied: () => void }) {
  return (
    <div class="secret">
      <p class="secret-warning">
        <strong>Copy it now.</strong> This {what} is shown this once and cannot be read again; keep it like a password.
      </p>
      <div class="secret-value">
        <code class="mono">{value}</code>
        <CopyButton text={value} label={`Copy ${what}`} onCopied={onCopied} />
      </div>
    </div>
  );
}

interface MeterProps {
  label: string;
  value: number;
  /** Null is unlimited: no bar can be drawn. */
  max: number | null;
  text: string;
  note?: ComponentChildren;
}

/** How much of a limit is used. */
export function Meter({ label, value, max, text, note }: MeterProps) {
  const share = max === null || max === 0 ? null : Math.min(1, value / max);
  const tone = share === null ? "" : share >= 0.95 ? "bad" : share >= 0.8 ? "warn" : "";
  return (
    <div class="meter-block">
      <div class="meter-head">
        <span class="label">{label}</span>
        <span class="meter-text">{text}</span>
      </div>
      {share === null ? (
        <div class="meter unlimited" aria-hidden="true" />
      ) : (
        <div
          class={`meter ${tone}`}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={max ?? 0}
          aria-valuenow={value}
          aria-valuetext={text}
        >
          <span style={{ width: `${Math.max(share * 100, share > 0 ? 0.7 : 0)}%` }} />
        </div>
      )}
      {note && <p class="hint">{note}</p>}
    </div>
  );
}

/** A figure with its name. */
export function Figure({
  label,
  children,
  note,
}: {
  label: string;
  children: ComponentChildren;
  note?: ComponentChildren;
}) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        <span class="figure-value">{children}</span>
        {note && <span class="figure-note">{note}</span>}
      </dd>
    </div>
  );
}

/** An address that breaks behind its slashes and dots, where it must break at all. */
export function Url({ url }: { url: string }) {
  const parts = url.split(/(?<=[/.?&=])(?![/])/);
  return (
    <>
      {parts.map((part, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  );
}

/** An http(s) URL as a link; anything else, which only another client could have stored, as text. */
export function ExternalUrl({ url }: { url: string }) {
  let safe = false;
  try {
    safe = ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    safe = false;
  }
  return safe ? (
    <a class="url" href={url} target="_blank" rel="noopener noreferrer nofollow">
      <Url url={url} />
    </a>
  ) : (
    <span class="url">
      <Url url={url} />
    </span>
  );
}
