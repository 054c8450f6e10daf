import { rolesFrom } from '../../platform/foundation/caller.ts'
import { eraseCustomerData, exportCustomerData } from '../../sales/customers/operations.ts'
import { Card, Pairs } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { NO_FORM, wrongField, type FormFields } from '../frame/form.ts'
import { page, type ViewContext } from '../frame/page.ts'

const MAX_ID = 128

const customerIn = (form: FormFields) => ({ userId: form.text('userId') ?? '' })

/** True if all lists of the file are empty: a mistyped id must not look like a customer without data. */
function isNothing(text: string): boolean {
  const { records } = JSON.parse(text) as { records: Readonly<Record<string, readonly unknown[]>> }
  return Object.values(records).every((list) => list.length === 0)
}

/** A customer's data: given to the person, or erased, as the GDPR demands. */
export const customersPage = page<null>({
  path: '/console/customers',
  roles: rolesFrom('admin'),
  scope: 'account',
  navigation: { group: 'settings', icon: 'people' },
  title: (texts) => texts.stores.customers.title,
  lead: (at) => at.texts.stores.customers.lead,
  actions: {
    export: {
      operation: exportCustomerData,
      input: customerIn,
      download: { name: ({ userId }, day) => `customer-${String(userId)}-${day}.json`, isNothing },
      notFound: (texts) => texts.stores.customers.unknown,
      done: (texts) => texts.stores.customers.exported,
    },
    erase: {
      operation: eraseCustomerData,
      input(form) {
        // It cannot be undone, so the id is typed twice.
        if (form.text('again') !== form.text('userId')) throw wrongField('again', 'customer_differs')
        return customerIn(form)
      },
      done: (texts) => texts.stores.customers.erased,
      show: (result, at) => <Erased at={at} records={result['records'] as Record<string, number>} />,
    },
  },
  load: () => Promise.resolve(null),
  view(at) {
    const t = at.texts.stores.customers
    const formOf = (id: string) => (at.form.id === id ? at.form : NO_FORM)
    const field = (action: string) => ({
      form: formOf(action),
      id: `${action}-userId`,
      name: 'userId',
      label: t.userId,
      hint: t.userIdHint,
      maxlength: MAX_ID,
      required: true,
    })
    return (
      <div class="stack wide">
        <Card title={t.export}>
          <ActionForm at={at} action="export" download>
            <p class="soft">{t.exportText}</p>
            <TextField {...field('export')} />
            <div>
              <Submit>{t.exportButton}</Submit>
            </div>
          </ActionForm>
        </Card>
        <Card title={t.erase}>
          <ActionForm at={at} action="erase">
            <Notice tone="warn" title={t.eraseText} />
            <TextField {...field('erase')} />
            <TextField form={formOf('erase')} name="again" label={t.again} maxlength={MAX_ID} required />
            <div>
              <Submit main={false}>{t.eraseButton}</Submit>
            </div>
          </ActionForm>
        </Card>
      </div>
    )
  },
})

function Erased({ at, records }: { at: ViewContext; records: Readonly<Record<string, number>> }) {
  const t = at.texts.stores.customers
  const kinds: Readonly<Record<string, string>> = t.kinds
  const found = Object.entries(records).filter(([, count]) => count > 0)
  return (
    <Card title={t.erased}>
      <div class="stack">
        {found.length === 0 ? (
          <p>{t.nothing}</p>
        ) : (
          <Pairs pairs={found.map(([name, count]) => [kinds[name] ?? name, at.formats.number(count)] as const)} />
        )}
        <div>
          <a class="button" href={at.path}>
            {t.back}
          </a>
        </div>
      </div>
    </Card>
  )
}
