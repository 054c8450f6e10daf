import type { Child } from 'hono/jsx'
import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchOperators, registerOperator, removeOperator } from '../../protection/operators/operator-operations.ts'
import { Badge, Card, EmptyState, PrintButton } from '../components/card.tsx'
import { Confirm, ActionForm, Submit } from '../components/form.tsx'
import { TextField } from '../components/fields.tsx'
import { Notice } from '../components/notice.tsx'
import { List } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { QrCode } from '../components/passkey.tsx'
import { page, type ViewContext } from '../frame/page.ts'

type Operators = z.output<typeof fetchOperators.response>['operators']
type Registered = z.output<typeof registerOperator.response>

/** Staff who may approve at the stations, their badges, and the set-up code of a device. */
export const operatorsPage = page<Operators>({
  path: '/console/operators',
  roles: rolesFrom('manager'),
  scope: 'store',
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
    remove: {
      operation: removeOperator,
      input: (form) => ({ operatorId: form.text('operatorId') }),
      done: (texts) => texts.operators.removed,
    },
  },
  load: async (at) => (await at.runIfAllowed(fetchOperators, { storeId: at.store?.storeId ?? '' }))?.operators ?? [],
  view(at) {
    const t = at.texts.operators
    const own = at.form.id === 'register' ? at.form : NO_FORM
    const form = own.errors['pin'] === undefined ? own : { ...own, errors: { ...own.errors, pin: t.pinRule } }
    return (
      <div class="stack wide">
        <Card title={t.list} flush>
          {at.data.length === 0 ? (
            <EmptyState icon="people" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          ) : (
            <List>
              {at.data.map(({ operatorId, name, hasPin, hasCard }) => (
                <li>
                  <div>
                    <strong>{name}</strong>
                    <span class="row">
                      <Badge>{t.badge}</Badge>
                      {hasPin ? <Badge>{t.pin}</Badge> : null}
                      {hasCard ? <Badge>{t.card}</Badge> : null}
                    </span>
                  </div>
                  <Confirm
                    at={at}
                    action="remove"
                    about={{ operatorId }}
                    label={t.remove}
                    question={t.removeQuestion(name)}
                    explanation={t.removeText}
                    confirm={t.remove}
                  />
                </li>
              ))}
            </List>
          )}
        </Card>
        <Card title={t.add}>
          <ActionForm at={at} action="register">
            <TextField form={form} name="name" label={t.name} hint={t.nameHint} maxlength={80} required />
            <TextField
              form={form}
              name="pin"
              type="password"
              inputmode="numeric"
              autocomplete="new-password"
              label={t.newPin}
              hint={t.pinHint}
              maxlength={12}
            />
            <p class="small soft">{t.addHint}</p>
            <div>
              <Submit>{t.register}</Submit>
            </div>
          </ActionForm>
        </Card>
      </div>
    )
  },
})

/** The badge to print. Its secret is in no other page. */
function OperatorBadge({ at, operator }: { at: ViewContext; operator: Registered }) {
  const t = at.texts.operators
  return (
    <div class="stack wide">
      <Notice title={t.once}>{t.onceText}</Notice>
      <section class="card print-badge">
        <QrCode text={operator.badge} label={t.qrOf(operator.name)} />
        <div>
          <h2>{operator.name}</h2>
          <p>{at.store?.tradingName}</p>
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
