/** What surrounds the forms that ask who somebody is. */
import type { ComponentChildren } from "preact";
import { Switches } from "../app/shell";
import { Logo } from "../parts/icon";

export function SignInFrame({ children }: { children: ComponentChildren }) {
  return (
    <div class="sign-in">
      <header class="sign-in-head">
        <span class="brand">
          <Logo />
          <span>tidewatch</span>
        </span>
        <Switches />
      </header>
      <main>{children}</main>
      <Tide />
    </div>
  );
}

/** A tide curve under a mark: what the service does, in one line. */
function Tide() {
  const points = Array.from({ length: 121 }, (_, x) => {
    const t = x / 120;
    const y =
      60 -
      26 * Math.sin(t * 4 * Math.PI - 0.8) * (0.75 + 0.25 * Math.sin(t * 2 * Math.PI)) -
      6 * Math.sin(t * 9 * Math.PI);
    return `${x * 10} ${y.toFixed(1)}`;
  });
  return (
    <svg class="tide" viewBox="0 0 1200 120" preserveAspectRatio="none" aria-hidden="true">
      <path class="tide-mark" d="M0 30H1200" />
      <path class="tide-fill" d={`M0 120L${points.join("L")}L1200 120Z`} />
      <path class="tide-line" d={`M${points.join("L")}`} />
    </svg>
  );
}
