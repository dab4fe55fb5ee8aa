/** Line icons on a 16-px grid, drawn here so that no request or font is needed for them. */

const PATHS = {
  overview: "M2 9h3l2-5 3 9 2-4h2",
  explore: "M2 13V3M2 13h12M4.5 10l3-4 2.5 2.5L14 4",
  buckets:
    "M3 5c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zm0 0v6c0 1.1 2.2 2 5 2s5-.9 5-2V5M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  boards: "M2.500 3h4.500v5.500H2.500zM9 3h4.500v3H9zM9 8h4.500v5H9zM2.500 10.500H7V13H2.500z",
  rules: "M8 2.5a4 4 0 0 0-4 4V10l-1.5 2h11L12 10V6.5a4 4 0 0 0-4-4zM6.5 14h3",
  webhooks:
    "M6 10.5 8.5 6M8.5 6A2.25 2.25 0 1 0 6 4M6 10.5A2.25 2.25 0 1 1 3.500 8.500M6 10.5h5M11 10.5a2.25 2.25 0 1 0 1-2",
  organization: "M3 14V3h7v11M10 7h3v7M1.500 14h13M5 5.500h3M5 8.500h3M5 11.500h3",
  account:
    "M8 8a2.750 2.750 0 1 0 0-5.500A2.750 2.750 0 0 0 8 8zM2.500 14c.5-3 2.700-4.500 5.500-4.500s5 1.500 5.500 4.500",
  api: "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2 4h12M2 8h12M2 12h12",
  copy: "M6 6h7v7H6zM3.500 10H3V3h7v.500",
  check: "M3 8.500 6.500 12 13 4.500",
  up: "M3.500 9.500 8 5l4.500 4.500",
  down: "M3.500 6.500 8 11l4.500-4.500",
  back: "M9.500 3.500 5 8l4.500 4.500",
  forward: "M6.500 3.500 11 8l-4.500 4.500",
  out: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500 14 14M5 7h4",
  into: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500 14 14M5 7h4M7 5v4",
  download: "M8 2.500v8M4.500 7.500 8 11l3.500-3.500M3 13.500h10",
  play: "M5 3.500v9l7-4.500z",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  warning: "M8 2.500 14.500 13.500h-13zM8 6.500v3.500M8 11.800v.2",
  sun: "M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
  leave: "M6 2.500H3v11h3M7 8h7M11 5l3 3-3 3",
  refresh: "M13 8a5 5 0 1 1-1.500-3.500L13 6M13 3v3h-3",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.500V8l2.500 1.500",
  trash: "M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.5 9h6l.5-9M6.700 7v4M9.300 7v4",
  edit: "M3 13l.7-2.800L10.500 3.400l2.100 2.100-6.800 6.800z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path class="logo-wave" d="M3 20c4.300-9.500 8.700-9.500 13 0s8.700 9.500 13 0" />
      <path class="logo-mark" d="M3 9h26" />
    </svg>
  );
}
