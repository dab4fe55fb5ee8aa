/** Keys of a bucket or of the organization: list, create, rotate, delete. The two differ in types and routes only. */
import { useState } from "preact/hooks";
import type { Role } from "../api/accounts";
import type { CreatedKey, Key, NewKey } from "../api/keys";
import { formatCount, formatSpan } from "../app/format";
import { useAction, useLoad } from "../app/load";
import { notify } from "../app/notices";
import { IfMay } from "../app/role";
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
  /** Who may change the keys. */
  role: Role;
  list: (signal: AbortSignal) => Promise<Key[]>;
  create: (key: NewKey) => Promise<CreatedKey>;
  rotate: (id: string, overlapSeconds: number) => Promise<CreatedKey>;
  remove: (id: string) => Promise<unknown>;
}

export function KeyList({ routes }: { routes: KeyRoutes }) {
  const keys = useLoad(`keys ${routes.id}`, routes.list, ["keys"]);
  const [creating, setCreating] = useState(false);
  const [rotating, setRotating] = useState<Key | null>(null);
  const [deleting, setDeleting] = useState<Key | null>(null);
  const create = (
    <IfMay role={routes.role}>
      <Button icon="plus" small onClick={() => setCreating(true)}>
        New key
      </Button>
    </IfMay>
  );
  return (
    <Section title={routes.title} note={routes.note} actions={create}>
      <WhenLoaded loaded={keys} what="keys">
        {(list) =>
          list.length === 0 ? (
            <Empty
              title="No keys yet"
              action={
                <IfMay role={routes.role}>
                  <Button look="primary" icon="plus" onClick={() => setCreating(true)}>
                    Create a key
                  </Button>
                </IfMay>
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
                  <th scope="col">Expires</th>
                  <th scope="col">Last used</th>
                  <th scope="col" class="number">
                    Calls this month
                  </th>
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
                    <td data-label="Expires">
                      <Expiry at={key.expiresAt} />
                    </td>
                    <td data-label="Last used">
                      <Ago at={key.lastUsedAt} />
                    </td>
                    <td class="number" data-label="Calls this month">
                      {formatCount(key.callsThisMonth)}
                    </td>
                    <td class="row-actions">
                      <IfMay role={routes.role}>
                        <Button
                          icon="refresh"
                          look="quiet"
                          small
                          label={`Rotate key ${key.name}`}
                          onClick={() => setRotating(key)}
                        />
                        <Button
                          icon="trash"
                          look="quiet"
                          small
                          label={`Delete key ${key.name}`}
                          onClick={() => setDeleting(key)}
                        />
                      </IfMay>
                    </td>
                  </tr>
                ))}
              </tbody>
            </TableFrame>
          )
        }
      </WhenLoaded>
      {creating && <CreateKey routes={routes} onClose={() => (setCreating(false), keys.reload())} />}
      {rotating !== null && (
        <RotateKey routes={routes} old={rotating} onClose={() => (setRotating(null), keys.reload())} />
      )}
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

function Expiry({ at }: { at: string | null }) {
  if (at === null) return <span class="muted">never</span>;
  if (Date.parse(at) <= Date.now()) return <Pill tone="bad">expired</Pill>;
  return <Time at={at} />;
}

const DAY_SECONDS = 86_400;
const LIVES = [
  { value: "", label: "never" },
  { value: "7", label: "in 7 days" },
  { value: "30", label: "in 30 days" },
  { value: "90", label: "in 90 days" },
  { value: "365", label: "in a year" },
];
const OVERLAPS = [
  { value: String(DAY_SECONDS), label: "a day" },
  { value: "3600", label: "an hour" },
  { value: String(7 * DAY_SECONDS), label: "7 days" },
  { value: "0", label: "not at all" },
];

interface RotateProps {
  routes: KeyRoutes;
  old: Key;
  onClose: () => void;
}

function RotateKey({ routes, old, onClose }: RotateProps) {
  const [overlap, setOverlap] = useState(OVERLAPS[0]!.value);
  const [made, setMade] = useState<CreatedKey | null>(null);
  const { run, running, error } = useAction(async () => {
    setMade(await routes.rotate(old._id, Number(overlap)));
  });
  if (made !== null) {
    return (
      <ShownOnce title={`New value of “${old.name}”`} what="key" value={made.key} onClose={onClose}>
        <p class="hint">
          {overlap === "0" ? "The former value has ended." : `The former value works for ${formatSpan(Number(overlap))} more.`}
        </p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="Rotate key" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <p>
          <strong class="name">{old.name}</strong> gets a new value. Give it to whatever uses the key before the present
          one ends.
        </p>
        <SelectField
          label="The present value goes on working for"
          value={overlap}
          onChange={setOverlap}
          options={OVERLAPS}
          fault={faultAt(error, "overlapSeconds")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "overlapSeconds"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Make new value
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function CreateKey({ routes, onClose }: { routes: KeyRoutes; onClose: () => void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState<Key["type"]>(routes.types[0]!.value);
  const [days, setDays] = useState("");
  const [created, setCreated] = useState<CreatedKey | null>(null);
  const { run, running, error } = useAction(async () => {
    const end = Date.now() + Number(days) * DAY_SECONDS * 1000;
    setCreated(await routes.create({ name, type, ...(days === "" ? {} : { expiresAt: new Date(end).toISOString() }) }));
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
        <SelectField
          label="Expires"
          value={days}
          onChange={setDays}
          options={LIVES}
          fault={faultAt(error, "expiresAt")}
        />
        <ErrorBox error={error} shownAt={(at) => at === "name" || at === "type" || at === "expiresAt"} />
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={running}>
            Create key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
