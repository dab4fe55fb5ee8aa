/** A password that can be shown: what is typed blind is typed wrong. */
import { useState } from "preact/hooks";
import { Button } from "./button";
import { TextField, type TextProps } from "./forms";

export function PasswordField(props: Omit<TextProps, "type" | "beside">) {
  const [shown, setShown] = useState(false);
  return (
    <TextField
      {...props}
      type={shown ? "text" : "password"}
      beside={
        <Button look="quiet" onClick={() => setShown(!shown)}>
          {shown ? "Hide" : "Show"}
          <span class="visually-hidden"> {props.label.toLowerCase()}</span>
        </Button>
      }
    />
  );
}
