import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { qrPng } from '../../platform/foundation/qr-code.ts'
import { createZone, fetchZones } from '../../shop/assistance/operations.ts'
import { LANGUAGES } from '../../../policy/page-language.ts'
import { Card, EmptyState, PrintButton } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { List } from '../components/table.tsx'
import { page, type ViewContext } from '../frame/page.ts'
import { consoleTexts } from '../texts/catalogue.ts'

type Zone = z.output<typeof fetchZones.response>['zones'][number]

const PATH = '/console/help/zones'
/** Width of the QR code of a sign, pixels. */
const CODE_SIZE = 320

/** The places of a store where customers call for help, and their signs to print. */
export const zonesPage = page<readonly Zone[] | undefined>({
  path: PATH,
  roles: rolesFrom('manager'),
  scope: 'store',
  title: (texts) => texts.help.zones.title,
  lead: (at) => at.texts.help.zones.lead,
  actions: {
    create: {
      operation: createZone,
      input: (form, at) => ({ storeId: at.store?.storeId, name: form.text('name') ?? '' }),
      done: (texts) => texts.help.zones.created,
      next: (result) => `${PATH}?zone=${String(result['zoneId'])}`,
    },
  },
  async load(at) {
    return (await at.runIfAllowed(fetchZones, { storeId: at.store?.storeId ?? '' }))?.zones
  },
  view(at) {
    const t = at.texts.help.zones
    const zones = at.data
    if (!zones)
      return (
        <Card>
          <EmptyState icon="info" title={t.needsPackage} />
        </Card>
      )
    const chosen = zones.find(({ zoneId }) => zoneId === at.query.get('zone'))
    return (
      <div class="stack wide">
        {chosen ? <Sign at={at} zone={chosen} /> : null}
        <div class="stack no-print">
          <Card title={t.all} flush>
            {zones.length === 0 ? (
              <EmptyState icon="chat" title={t.nothing} />
            ) : (
              <List>
                {zones.map(({ zoneId, name, createdAt }) => (
                  <li>
                    <div>
                      <strong>{name}</strong>
                      <span class="sub">{t.since(at.formats.date(Date.parse(createdAt)))}</span>
                    </div>
                    <a
                      class="button"
                      href={`${PATH}?zone=${zoneId}`}
                      aria-label={`${t.show}: ${name}`}
                      {...(zoneId === chosen?.zoneId && { 'aria-current': 'true' as const })}
                    >
                      {t.show}
                    </a>
                  </li>
                ))}
              </List>
            )}
          </Card>
          <Card title={t.add}>
            <ActionForm at={at} action="create">
              <TextField form={at.form} name="name" label={t.name} hint={t.nameHint} maxlength={80} required />
              <div>
                <Submit>{t.addButton}</Submit>
              </div>
            </ActionForm>
          </Card>
          <div>
            <a class="button" href="/console/help">
              {t.back}
            </a>
          </div>
        </div>
      </div>
    )
  },
})

/** The sign of a zone, in both languages, because customers read it. */
function Sign({ at, zone: { name, url } }: { at: ViewContext; zone: Zone }) {
  const t = at.texts.help.zones
  const code = qrPng(url).toString('base64')
  return (
    <Card title={name}>
      <div class="stack sign">
        {[at.language, ...LANGUAGES.filter((other) => other !== at.language)].map((language) => (
          <p class="strong" lang={language}>
            {consoleTexts(language).help.zones.scan}
          </p>
        ))}
        <img src={`data:image/png;base64,${code}`} alt={t.codeOf(name)} width={CODE_SIZE} height={CODE_SIZE} />
        <p class="sub">
          <code>{url}</code>
        </p>
        <div class="no-print">
          <PrintButton label={t.print} />
        </div>
      </div>
    </Card>
  )
}
