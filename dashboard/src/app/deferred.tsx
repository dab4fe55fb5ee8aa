/** A page whose script comes when it is needed, or while the browser has nothing else to do. */
import type { ComponentType } from "preact";
import { Page, WhenLoaded } from "../parts/page";
import { useLoad } from "./load";

type Load = () => Promise<ComponentType>;

export function Deferred({ load, title }: { load: Load; title: string }) {
  // Wrapped: a component is a function, and a state setter would call it.
  const loaded = useLoad(title, async () => ({ component: await load() }));
  if (loaded.data !== null) return <loaded.data.component />;
  return (
    <Page title={title}>
      <WhenLoaded loaded={loaded} what="page">
        {() => null}
      </WhenLoaded>
    </Page>
  );
}
