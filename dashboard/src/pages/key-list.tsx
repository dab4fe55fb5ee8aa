/** Keys of a bucket or of the organization: list, create, delete. The two differ in types and routes only. */
import { useState } from "preact/hooks";
import type { CreatedKey, Key } from "../api/keys";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { Button } from "../parts/button";
import { Confirm, Dialog, ShownOnce } from "../parts/dialog";
import { ErrorBox, SelectField, TextField, faultAt } from "../parts/forms";
import { Empty, Section, TableFrame, WhenLoaded } from "../parts/page";
import { Ago, Pill, Time } from "../parts/show";

export interface KeyRoutes {
  /** Names the list, for the loader. */
  id: string;
  title: string;
  note: string;
  types: { value: Key["type"]; label: string }[];
  list: (signal: AbortSignal) => Promise<Key[]>;
  create: (name: string, type: Key["type"]) => Promise<CreatedKey>;
  remove: (id: string) => Promise<unknown>;
}

export function KeyList({ routes }: { routes: KeyRoutes }) {
  const keys = useLoad(`keys ${routes.id}`, routes.list, ["keys"]);
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<Key | null>(null);
  const create = (
    <Button icon="plus" small onClick={() => setCreating(true)}>
      New key
    </Button>
  );
  return (
    <Section title={routes.title} note={routes.note} actions={create}>
      <WhenLoaded loaded={keys} what="keys">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No keys yet"
              action={
                <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
                  Make a key
                </Button>
              }
            >
              Sensors and programs authenticate with a key.
            </Empty>
          ) : (
            <TableFrame label={routes.title} stacked>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Type</th>
                  <th scope="col">Begins with</th>
                  <th scope="col">Created</th>
                  <th scope="col">Last used</th>
                  <th scope="col">
                    <span class="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {list.map((key) => (
                  <tr key={key._id}>
                    <td class="name">{key.name}</td>
                    <td data-label="Type">
                      <Pill tone={key.type === "read" ? "idle" : "accent"}>{key.type}</Pill>
                    </td>
                    <td class="mono nowrap" data-label="Begins with">
                      {key.keyPrefix}
                    </td>
                    <td data-label="Created">
                      <Time at={key.createdAt} />
                    </td>
                    <td data-label="Last used">
                      <Ago at={key.lastUsedAt} />
                    </td>
                    <td class="row-actions">
                      <Button
                        icon="trash"
                        look="quiet"
                        small
                        label={`Delete key ${key.name}`}
                        onClick={() => setDeleting(key)}
                      />
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
      {creating && <CreateKey routes={routes} onClose={() => (setCreating(false), keys.reload())} />}
      {deleting !== null && (
        <Confirm
          title="Delete key"
          action="Delete key"
          onClose={() => setDeleting(null)}
          onConfirm={async () => {
            await routes.remove(deleting._id);
            notify(`Key “${deleting.name}” deleted; it no longer works.`);
            setDeleting(null);
            keys.reload();
          }}
        >
          <p>
            Whatever uses <strong class="name">{deleting.name}</strong> (<span class="mono">{deleting.keyPrefix}</span>)
            is refused from that moment on.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function CreateKey({ routes, onClose }: { routes: KeyRoutes; onClose: () => void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState<Key["type"]>(routes.types[0]!.value);
  const [created, setCreated] = useState<CreatedKey | null>(null);
  const { run, running, error } = useAction(async () => {
    setCreated(await routes.create(name, type));
  });
  if (created !== null) {
    return (
      <ShownOnce title={`Key “${created.name}”`} what="key" value={created.key} onClose={onClose}>
        <p class="hint">It may: {created.permissions.join(", ")}.</p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="New key" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          required
          maxLength={100}
          hint="Use one key per client, so that each can be revoked separately"
          fault={faultAt(error, "name")}
        />
        <SelectField
          label="Type"
          value={type}
          onChange={(value) => setType(value as Key["type"])}
          options={routes.types}
          fault={faultAt(error, "type")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "name" || at === "type"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Make key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
