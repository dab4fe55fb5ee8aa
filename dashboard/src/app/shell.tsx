/** What surrounds every page: navigation, theme, time zone and who is logged in. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { User } from "../api/accounts";
import { Button } from "../parts/button";
import { ErrorBox } from "../parts/forms";
import { Icon, Logo, type IconName } from "../parts/icon";
import { staleSince } from "./changes";
import { useFiring } from "./firing";
import { formatMoment } from "./format";
import { useAction } from "./load";
import { Notices } from "./notices";
import { chooseZone, namedZone, shownTheme, theme, useZone } from "./preferences";
import { go, useRoute, whenFree } from "./route";
import { leave } from "./session";
import { useStore } from "./store";

const SECTIONS: { path: string; label: string; icon: IconName }[] = [
  { path: "", label: "Overview", icon: "overview" },
  { path: "explore", label: "Explorer", icon: "explore" },
  { path: "boards", label: "Boards", icon: "boards" },
  { path: "buckets", label: "Buckets", icon: "buckets" },
  { path: "rules", label: "Alert rules", icon: "rules" },
  { path: "webhooks", label: "Webhooks", icon: "webhooks" },
  { path: "organization", label: "Organization", icon: "organization" },
];

export function Shell({ section, user, children }: { section: string; user: User; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { path } = useRoute();
  const leaving = useAction(async () => {
    await leave();
    go("#/login");
  });
  const firing = useFiring();
  useEffect(() => setOpen(false), [path.join("/")]);
  useEffect(() => {
    if (!open) return;
    const close = (event: KeyboardEvent) => {
      if (event.key === "Escape") setOpen(false);
    };
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [open]);
  return (
    <div class="shell">
      <a
        class="skip-link"
        href="#main"
        onClick={(event) => {
          // The hash is the route: the link must not become one.
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="topbar">
        <a class="brand" href="#/" aria-label="tidewatch: go to the overview">
          <Logo />
          <span>tidewatch</span>
        </a>
        <button
          type="button"
          class="menu-button"
          aria-expanded={open}
          aria-controls="navigation"
          onClick={() => setOpen(!open)}
        >
          <Icon name={open ? "close" : "menu"} />
          <span>Menu</span>
          {!open && firing > 0 && (
            <span class="nav-count">
              {firing}
              <span class="visually-hidden"> firing</span>
            </span>
          )}
        </button>
      </header>
      <aside class={open ? "sidebar open" : "sidebar"} id="navigation" aria-label="Navigation and account">
        <a class="brand" href="#/" aria-label="tidewatch: go to the overview">
          <Logo />
          <span>tidewatch</span>
        </a>
        <nav aria-label="Main">
          <ul>
            {SECTIONS.map(({ path: target, label, icon }) => (
              <li key={target}>
                <a href={`#/${target}`} aria-current={section === target ? "page" : undefined}>
                  <Icon name={icon} />
                  {label}
                  {target === "rules" && firing > 0 && (
                    <span class="nav-count">
                      {firing}
                      <span class="visually-hidden"> firing</span>
                    </span>
                  )}
                </a>
              </li>
            ))}
            <li>
              <a href="/api/docs">
                <Icon name="api" />
                API reference
              </a>
            </li>
          </ul>
        </nav>
        <div class="sidebar-foot">
          <Switches />
          <a href="#/account" class="user" aria-current={section === "account" ? "page" : undefined}>
            <Icon name="account" />
            <span class="user-names">
              <span class="name">{user.name}</span>
              <span class="muted" title={user.email}>
                {user.email}
              </span>
            </span>
          </a>
          <Button
            icon="leave"
            look="quiet"
            small
            busy={leaving.running}
            onClick={() => whenFree(() => void leaving.run())}
          >
            Log out
          </Button>
          <ErrorBox error={leaving.error} />
        </div>
      </aside>
      <Notices />
      <main class="main" id="main" ref={main} tabIndex={-1}>
        <Staleness />
        {children}
      </main>
    </div>
  );
}

/** That what is shown may no longer be so, and since when. */
function Staleness() {
  const since = useStore(staleSince);
  const zone = useZone();
  return (
    <div role="status" class="staleness">
      {since !== null && (
        <p class="warn-box">
          <span>
            <strong>Not up to date since {formatMoment(since, Date.now(), zone)}.</strong> The server could not be
            asked; it is tried again every few seconds.
          </span>
        </p>
      )}
    </div>
  );
}

/** Time zone and theme. */
export function Switches() {
  const shown = useStore(shownTheme);
  const chosen = useZone();
  const named = useStore(namedZone);
  return (
    <div class="switches">
      <div class="segments" role="group" aria-label="Times are shown in">
        <button type="button" aria-pressed={chosen === "utc"} onClick={() => chooseZone("utc")}>
          UTC
        </button>
        <button type="button" aria-pressed={chosen === "local"} onClick={() => chooseZone("local")}>
          Local
        </button>
        {named !== "" && (
          <button
            type="button"
            class="named-zone"
            title={named}
            aria-pressed={chosen === named}
            onClick={() => chooseZone(named)}
          >
            {named.replace(/^.*\//, "").replaceAll("_", " ")}
          </button>
        )}
      </div>
      <Button
        small
        look="quiet"
        icon={shown === "dark" ? "sun" : "moon"}
        label={shown === "dark" ? "Light theme" : "Dark theme"}
        onClick={() => {
          const next = shown === "dark" ? "light" : "dark";
          const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
          // Back at what the system says, the page follows the system again.
          theme.set(next === system ? "system" : next);
        }}
      />
    </div>
  );
}
