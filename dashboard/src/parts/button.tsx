/** Buttons and links that look like them. */
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon";

type Look = "plain" | "primary" | "danger" | "quiet";

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  look?: Look;
  onClick?: (event: MouseEvent) => void;
  type?: "button" | "submit";
  disabled?: boolean;
  busy?: boolean;
  small?: boolean;
  /** Required where there is no text. */
  label?: string;
  pressed?: boolean;
  class?: string;
}

export function Button(props: ButtonProps) {
  const { children, icon, look = "plain", type = "button", busy, small, label, pressed } = props;
  const names = ["button", look, small ? "small" : "", children === undefined ? "square" : "", props.class ?? ""];
  return (
    <button
      type={type}
      class={names.filter((name) => name !== "").join(" ")}
      disabled={props.disabled}
      aria-disabled={busy ? "true" : undefined}
      aria-busy={busy ? "true" : undefined}
      aria-label={label}
      aria-pressed={pressed}
      title={children === undefined ? label : undefined}
      onClick={props.onClick}
    >
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}

interface LinkButtonProps {
  href: string;
  children: ComponentChildren;
  icon?: IconName;
  look?: Look;
  small?: boolean;
}

export function LinkButton({ href, children, icon, look = "plain", small }: LinkButtonProps) {
  return (
    <a href={href} class={`button ${look}${small ? " small" : ""}`}>
      {icon && <Icon name={icon} />}
      <span>{children}</span>
    </a>
  );
}
