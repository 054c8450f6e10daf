import type { Child } from 'hono/jsx'
import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import {
  fetchOperators,
  registerOperator,
  removeOperator,
  updateOperator,
} from '../../protection/operators/operator-operations.ts'
import { Badge, Card, EmptyState, PrintButton } from '../components/card.tsx'
import { Confirm, ActionForm, formId, Submit } from '../components/form.tsx'
import { TextField } from '../components/fields.tsx'
import { Notice } from '../components/notice.tsx'
import { List, Pagination, rowsOfPage } from '../components/table.tsx'
import { storeName, StoreOfRow } from '../components/all-stores.tsx'
import { ChooseToAdd, partOf, rowsOfStores, type RowsOfStores } from '../components/rows-of-stores.tsx'
import { NO_FORM, type FormState } from '../frame/form.ts'
import { QrCode } from '../components/passkey.tsx'
import { page, type ViewContext } from '../frame/page.ts'

type Operators = z.output<typeof fetchOperators.response>['operators']
/** What the page shows. `total` is unknown while all stores are chosen. */
interface OperatorsView extends RowsOfStores<Operators[number]> {
  readonly total?: number
}
type Registered = z.output<typeof registerOperator.response>
type Updated = z.output<typeof updateOperator.response>

/** Staff who may approve at the stations, their badges, and the set-up code of a device. */
export const operatorsPage = page<OperatorsView>({
  path: '/console/operators',
  roles: rolesFrom('manager'),
  scope: 'stores',
  navigation: { group: 'operations', icon: 'people' },
  title: (texts) => texts.operators.title,
  lead: (at) => at.texts.operators.lead,
  actions: {
    register: {
      operation: registerOperator,
      input: (form, at) => ({ storeId: at.store?.storeId, name: form.text('name'), pin: form.text('pin') }),
      done: (texts) => texts.operators.registered,
      show: (result, at) => <OperatorBadge at={at} operator={result as Registered} />,
    },
    newBadge: {
      operation: updateOperator,
      input: (form) => ({ operatorId: form.text('operatorId'), newBadge: true }),
      done: (texts) => texts.operators.badgeReplaced,
      show: (result, at) => <OperatorBadge at={at} operator={result as Updated} />,
    },
    newPin: {
      operation: updateOperator,
      input(form) {
        const pin = form.text('pin')
        // A refused form comes back with the field empty: sending it again must not remove the PIN.
        if (pin === undefined) throw invalid('pin', 'is empty')
        return { operatorId: form.text('operatorId'), pin }
      },
      done: (texts) => texts.operators.pinReplaced,
    },
    removePin: {
      operation: updateOperator,
      input: (form) => ({ operatorId: form.text('operatorId'), pin: null }),
      done: (texts) => texts.operators.pinRemoved,
    },
    remove: {
      operation: removeOperator,
      input: (form) => ({ operatorId: form.text('operatorId') }),
      done: (texts) => texts.operators.removed,
    },
  },
  async load(at) {
    const listOf = async (storeId: string) => (await at.runIfAllowed(fetchOperators, { storeId }))?.operators ?? []
    if (!at.store) return rowsOfStores(at, async ({ storeId, ...about }) => partOf(await listOf(storeId), about))
    const all = await listOf(at.store.storeId)
    return { nextCursor: undefined, ...rowsOfPage(at, all), total: all.length }
  },
  view(at) {
    const t = at.texts.operators
    const { rows, total, nextCursor } = at.data
    return (
      <div class="stack wide">
        <Card title={t.list} flush>
          {rows.length === 0 ? (
            <EmptyState icon="people" title={t.nothing}>
              {at.store ? t.nothingText : undefined}
            </EmptyState>
          ) : (
            <List>
              {rows.map((operator) => (
                <li>
                  <Person at={at} operator={operator} />
                </li>
              ))}
            </List>
          )}
          <Pagination at={at} shown={rows.length} total={total} nextCursor={nextCursor} />
        </Card>
        <ChooseToAdd at={at} />
        {at.store ? <AddOperator at={at} /> : null}
      </div>
    )
  },
})

/** Form that registers a person. */
function AddOperator({ at }: { at: ViewContext }) {
  const t = at.texts.operators
  const form = formOf(at, 'register')
  return (
    <Card title={t.add}>
      <ActionForm at={at} action="register">
        <TextField form={form} name="name" label={t.name} hint={t.nameHint} maxlength={80} required />
        <PinField form={form} at={at} />
        <p class="small soft">{t.addHint}</p>
        <div>
          <Submit>{t.register}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** One person of the list, with the buttons for badge, PIN and removal. */
function Person({ at, operator }: { at: ViewContext; operator: Operators[number] }) {
  const t = at.texts.operators
  const { operatorId, name, hasPin, hasCard } = operator
  return (
    <>
      <div>
        <strong>{name}</strong>
        <StoreOfRow at={at} storeId={operator.storeId} />
        <span class="row">
          <Badge>{t.badge}</Badge>
          {hasPin ? <Badge>{t.pin}</Badge> : null}
          {hasCard ? <Badge>{t.card}</Badge> : null}
        </span>
      </div>
      <span class="row">
        <Confirm
          at={at}
          action="newBadge"
          about={{ operatorId }}
          label={t.newBadge}
          question={t.newBadgeQuestion(name)}
          explanation={t.newBadgeText}
          confirm={t.newBadge}
        />
        <Confirm
          at={at}
          action="newPin"
          about={{ operatorId }}
          label={t.changePin}
          question={t.changePinQuestion(name)}
          explanation={t.changePinText}
          confirm={t.savePin}
        >
          <PinField
            at={at}
            form={formOf(at, formId('newPin', { operatorId }))}
            id={`pin-${operatorId}`}
            label={t.changePin}
            required
          />
        </Confirm>
        {hasPin ? (
          <Confirm
            at={at}
            action="removePin"
            about={{ operatorId }}
            label={t.removePin}
            question={t.removePinQuestion(name)}
            explanation={t.removePinText}
            confirm={t.removePin}
          />
        ) : null}
        <Confirm
          at={at}
          action="remove"
          about={{ operatorId }}
          label={t.remove}
          question={t.removeQuestion(name)}
          explanation={t.removeText}
          confirm={t.remove}
        />
      </span>
    </>
  )
}

/** What one of the page's forms held and which errors it has. */
function formOf(at: ViewContext, id: string): FormState {
  if (at.form.id !== id) return NO_FORM
  const { errors } = at.form
  return errors['pin'] === undefined ? at.form : { ...at.form, errors: { ...errors, pin: at.texts.operators.pinRule } }
}

interface PinFieldProps {
  at: ViewContext
  form: FormState
  id?: string
  label?: string
  required?: boolean
}

function PinField({ at, form, id, label = at.texts.operators.newPin, required = false }: PinFieldProps) {
  return (
    <TextField
      form={form}
      name="pin"
      {...(id !== undefined && { id })}
      type="password"
      inputmode="numeric"
      autocomplete="new-password"
      label={label}
      hint={at.texts.operators.pinHint}
      maxlength={12}
      required={required}
    />
  )
}

/** The badge to print. Its secret is in no other page. */
function OperatorBadge({ at, operator }: { at: ViewContext; operator: Registered | Updated }) {
  const t = at.texts.operators
  return (
    <div class="stack wide">
      <Notice title={t.once}>{t.onceText}</Notice>
      <section class="card print-badge">
        <QrCode text={operator.badge ?? ''} label={t.qrOf(operator.name)} />
        <div>
          <h2>{operator.name}</h2>
          <p>{storeName(at, operator.storeId)}</p>
          <p class="soft small">{t.badgeUse}</p>
        </div>
      </section>
      <Back at={at}>
        <PrintButton label={t.print} />
      </Back>
    </div>
  )
}

function Back({ at, children }: { at: ViewContext; children?: Child }) {
  return (
    <div class="row no-print">
      {children}
      <a class="button" href={at.path}>
        {at.texts.operators.back}
      </a>
    </div>
  )
}
