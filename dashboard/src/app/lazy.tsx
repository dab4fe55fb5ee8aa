/** A part of a page whose script comes when it is needed. */
import type { ComponentType } from "preact";
import { WhenLoaded } from "../parts/page";
import { useLoad } from "./load";

interface LazyProps<P> {
  /** Of all such parts, this one. */
  name: string;
  /** What is waited for, in a word. */
  what: string;
  load: () => Promise<ComponentType<P>>;
  props: P;
}

export function Lazy<P extends object>({ name, what, load, props }: LazyProps<P>) {
  // Wrapped: a component is a function, and a state setter would call it.
  const loaded = useLoad(name, async () => ({ Loaded: await load() }));
  return (
    <WhenLoaded loaded={loaded} what={what}>
      {({ Loaded }) => <Loaded {...props} />}
    </WhenLoaded>
  );
}
