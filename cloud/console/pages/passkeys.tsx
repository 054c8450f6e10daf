import type { z } from 'zod'
import { beginPasskey, fetchPasskeys, registerPasskey, removePasskey } from '../../platform/users/passkey-operations.ts'
import { Card } from '../components/card.tsx'
import { Confirm } from '../components/confirm.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionButton, ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { CredentialField, credentialOf, PasskeyPart } from '../components/passkey.tsx'
import { List } from '../components/table.tsx'
import type { PageAction, PageContext, ViewContext } from '../frame/page.ts'

/** What the card of passkeys on the page of the profile shows. */
export interface PasskeyView {
  readonly passkeys: z.output<typeof fetchPasskeys.response>
}

/** Loads the passkeys of the user. */
export const loadPasskeys = (at: PageContext) => at.run(fetchPasskeys, {})

/** Actions of the card. */
export const passkeyActions: Readonly<Record<string, PageAction>> = {
  beginPasskey: {
    operation: beginPasskey,
    input: () => ({}),
    done: () => '',
    show: (result, at) => <NewPasskey at={at} options={(result as z.output<typeof beginPasskey.response>).options} />,
  },
  registerPasskey: {
    operation: registerPasskey,
    input: (form) => ({ name: form.text('name'), credential: credentialOf(form) }),
    done: (texts) => texts.passkeys.added,
  },
  removePasskey: {
    operation: removePasskey,
    input: (form) => ({ passkeyId: form.text('passkeyId') }),
    done: (texts) => texts.passkeys.removed,
  },
}

/** The passkeys of the user, with buttons to add and remove one. */
export function PasskeyCard({ at }: { at: ViewContext<PasskeyView> }) {
  const t = at.texts.passkeys
  const { available, passkeys } = at.data.passkeys
  if (!available && passkeys.length === 0) return null
  return (
    <Card title={t.title}>
      <p>{available ? t.lead : t.missing}</p>
      {at.form.id === 'registerPasskey' ? (
        <Notice tone="warn" title={t.notAdded} isUrgent>
          {Object.values(at.form.errors)[0] ?? at.form.message}
        </Notice>
      ) : null}
      {passkeys.length === 0 ? null : (
        <List>
          {passkeys.map((passkey) => (
            <li>
              <Passkey at={at} passkey={passkey} />
            </li>
          ))}
        </List>
      )}
      {available ? (
        <PasskeyPart kind="begin">
          <ActionButton at={at} action="beginPasskey" main>
            {t.add}
          </ActionButton>
        </PasskeyPart>
      ) : null}
    </Card>
  )
}

function Passkey({ at, passkey }: { at: ViewContext; passkey: PasskeyView['passkeys']['passkeys'][number] }) {
  const t = at.texts.passkeys
  const { passkeyId, name, createdAt, lastUsedAt, backedUp } = passkey
  const ago = (time: string) => at.formats.ago(Date.parse(time), at.nowMs)
  const facts = [
    t.created(ago(createdAt)),
    lastUsedAt === undefined ? t.unused : t.used(ago(lastUsedAt)),
    ...(backedUp ? [t.backedUp] : []),
  ]
  return (
    <>
      <div>
        <strong>{name}</strong>
        <span class="sub">{facts.join(' · ')}</span>
      </div>
      <Confirm
        at={at}
        action="removePasskey"
        about={{ passkeyId }}
        label={t.remove}
        question={t.removeQuestion(name)}
        explanation={t.removeText}
        confirm={t.remove}
      />
    </>
  )
}

/** The second step: the name, and the button that opens the browser's dialogue. */
function NewPasskey({ at, options }: { at: ViewContext; options: object }) {
  const t = at.texts.passkeys
  return (
    <Card title={t.add}>
      <PasskeyPart kind="create" options={options} failed={t.failed}>
        <p>{t.addLead}</p>
        <ActionForm at={at} action="registerPasskey">
          <TextField form={at.form} name="name" label={t.name} hint={t.nameHint} maxlength={80} required />
          <CredentialField />
          <Submit>{t.create}</Submit>
        </ActionForm>
      </PasskeyPart>
    </Card>
  )
}
