/** A page's frame: title, focus on arrival, and its loading, error and empty states. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "../api/client";
import { sentence } from "../app/format";
import { mayGoBetter, type Loaded } from "../app/load";
import { setTitle } from "../app/title";
import { Button } from "./button";
import { Logo } from "./icon";

interface PageProps {
  title: string;
  /** Links that lead up to here. */
  trail?: { href: string; label: string }[];
  intro?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}

export function Page({ title, trail, intro, actions, children, class: extra }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => setTitle(title), [title]);
  // A screen reader hears the new page's title, and Tab goes on from there.
  useEffect(() => {
    if (document.querySelector("dialog[open]") === null) heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  return (
    <div class={extra ? `page ${extra}` : "page"}>
      <header class="page-head">
        <div class="page-title">
          {trail && trail.length > 0 && (
            <nav class="trail" aria-label="Breadcrumb">
              <ol>
                {trail.map((step) => (
                  <li key={step.href}>
                    <a href={step.href}>{step.label}</a>
                  </li>
                ))}
              </ol>
            </nav>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {intro && <div class="intro">{intro}</div>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  title: string;
  actions?: ComponentChildren;
  note?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}

export function Section({ title, actions, note, children, class: extra }: SectionProps) {
  return (
    <section class={extra ? `section ${extra}` : "section"} aria-label={title}>
      <header class="section-head">
        <div>
          <h2>{title}</h2>
          {note && <p class="hint">{note}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** What `loaded` holds, or how it stands. */
export function WhenLoaded<T>({
  loaded,
  what,
  children,
}: {
  loaded: Loaded<T>;
  what: string;
  children: (data: T) => ComponentChildren;
}) {
  if (loaded.data !== null) {
    return (
      <>
        {loaded.error !== null && <LoadError error={loaded.error} what={what} onRetry={loaded.reload} />}
        {children(loaded.data)}
      </>
    );
  }
  if (loaded.error !== null) return <LoadError error={loaded.error} what={what} onRetry={loaded.reload} />;
  // The space is kept from the start; only its shimmer waits until loading lasts.
  return <Skeleton shown={loaded.slow} what={what} />;
}

export function LoadError({ error, what, onRetry }: { error: Error; what: string; onRetry: () => void }) {
  const missing = error instanceof ApiError && error.status === 404;
  return (
    <div class="state" role="alert">
      <h2>{missing ? "Not found" : `The ${what} could not be loaded`}</h2>
      <p>{missing ? "It may have been deleted, or the link is from another organization." : sentence(error.message)}</p>
      {mayGoBetter(error) && <p>Retrying every few seconds.</p>}
      {!missing && (
        <Button icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Skeleton({ shown, what }: { shown: boolean; what: string }) {
  return (
    <div class={shown ? "skeleton shown" : "skeleton"} role="status">
      <span class="visually-hidden">{shown ? `Loading the ${what}` : ""}</span>
      <span />
      <span />
      <span />
    </div>
  );
}

/** Nothing here yet, and what to do about it. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="state empty">
      <Logo />
      <h2>{title}</h2>
      <p>{children}</p>
      {action && <div class="actions">{action}</div>}
    </div>
  );
}

interface TableFrameProps {
  label: string;
  children: ComponentChildren;
  /** Scrolls in height too. */
  capped?: boolean;
  /** On a phone each row is a block of lines, each with its cell's `data-label` in front. */
  stacked?: boolean;
}

/** A table that scrolls inside itself where it is wider than the screen. */
export function TableFrame({ label, children, capped, stacked }: TableFrameProps) {
  const names = ["table-frame", capped ? "capped" : "", stacked ? "stacked" : ""].filter((name) => name !== "");
  return (
    <div class={names.join(" ")} tabIndex={0} role="group" aria-label={label}>
      <table>{children}</table>
    </div>
  );
}

interface PagerProps {
  offset: number;
  limit: number;
  total: number;
  onMove: (offset: number) => void;
  back?: string;
  forward?: string;
  /** Of several lists on a page. */
  label?: string;
}

/** Steps through a long list. */
export function Pager({ offset, limit, total, onMove, back = "Newer", forward = "Older", label = "Pages" }: PagerProps) {
  if (total <= limit) return null;
  return (
    <nav class="pager" aria-label={label}>
      <Button small icon="back" disabled={offset === 0} onClick={() => onMove(Math.max(0, offset - limit))}>
        {back}
      </Button>
      <span class="muted">
        {offset + 1} to {Math.min(total, offset + limit)} of {total.toLocaleString("en-GB")}
      </span>
      <Button small icon="forward" disabled={offset + limit >= total} onClick={() => onMove(offset + limit)}>
        {forward}
      </Button>
    </nav>
  );
}
