import { riskClassCeiling, ProtectionPolicy } from '../../../policy/store-policy.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { Select, TextArea, TextField } from '../components/fields.tsx'
import { Submit } from '../components/form.tsx'
import { jsonOf, type FormFields, type FormState } from '../frame/form.ts'
import type { ViewContext } from '../frame/page.ts'

/** Rules of alarms that the form shows as lines. Longer lists are changed as JSON. */
const SEVERITY_LINES = 20
/** Empty lines for new rules. */
const NEW_LINES = 2
const RISK_CLASSES = [0, 1, 2, 3]

/** Names of fields by the end of their path in the policy. Every other path is in `rest`. */
const FIELD_OF: Readonly<Record<string, string>> = {
  requiresManualOverrideAboveValue: 'overrideAbove',
  operatorOverridesPerHour: 'overridesPerHour',
  spotCheckRate: 'spotCheck',
  'offline.storeBound': 'storeBound',
  'offline.maxRiskClass': 'maxRiskClass',
  'offline.hardCount': 'hardCount',
  'offline.maxIsolatedSeconds': 'isolatedMinutes',
  unknownTag: 'unknownTag',
  'tillSales.salesPerHour': 'salesPerHour',
  'tillSales.valuePerHour': 'valuePerHour',
  // A form does not keep fields with `code` in their name, as those of secrets.
  'tillSales.codes': 'printed',
  'tillSales.passByProduct': 'passByProduct',
}

/** Field of the form for a path of the request. */
export function ruleFieldOf(path: string): string {
  const name = path.replace(/^policy\./, '')
  return FIELD_OF[name] ?? (name.startsWith('gate.severity') ? 'severity' : 'rest')
}

/** Values of the form's fields for a policy. */
export function valuesOfPolicy(policy: ProtectionPolicy): Record<string, string> {
  const { offline, gate, tillSales, unknownTag } = policy
  const { requiresManualOverrideAboveValue, operatorOverridesPerHour, spotCheckRate } = policy
  const { allowedActionsByCategory, requiresStaffForBrand, minAgent } = policy
  const { severity, ...otherGate } = gate
  const isLong = severity.length > SEVERITY_LINES
  const rest = {
    allowedActionsByCategory,
    requiresStaffForBrand,
    gate: isLong ? gate : otherGate,
    tillSales: { agents: tillSales.agents },
    ...(minAgent !== undefined && { minAgent }),
  }
  const lines = isLong ? [] : severity
  return {
    overrideAbove: requiresManualOverrideAboveValue === null ? '' : String(requiresManualOverrideAboveValue),
    overridesPerHour: String(operatorOverridesPerHour),
    spotCheck: String(Number((spotCheckRate * 100).toFixed(6))),
    storeBound: offline.storeBound,
    maxRiskClass: String(offline.maxRiskClass),
    hardCount: String(offline.hardCount),
    isolatedMinutes: String(Number((offline.maxIsolatedSeconds / 60).toFixed(6))),
    unknownTag,
    salesPerHour: String(tillSales.salesPerHour),
    valuePerHour: String(tillSales.valuePerHour),
    printed: tillSales.codes,
    passByProduct: String(tillSales.passByProduct),
    rest: JSON.stringify(rest, null, 2),
    ...(isLong
      ? { severityLines: 'json' }
      : Object.fromEntries(
          lines.flatMap(({ category, fromValue, severity: reaction }, index) => [
            [`rule${index}-category`, category ?? ''],
            [`rule${index}-from`, fromValue === undefined ? '' : String(fromValue)],
            [`rule${index}-reaction`, reaction],
          ]),
        )),
  }
}

/** The policy of a sent form, which the operation validates. Throws 400 if the JSON is none. */
export function policyOfForm(form: FormFields): Record<string, unknown> {
  // An empty field is an error, and never the default of the policy.
  const number = (name: string) => form.number(name) ?? null
  const scaled = (name: string, factor: number) => {
    const value = number(name)
    return typeof value === 'number' ? value * factor : value
  }
  const rest = restOfForm(form.text('rest'))
  const gate = objectIn(rest, 'gate')
  const isJson = form.text('severityLines') === 'json'
  return {
    ...rest,
    requiresManualOverrideAboveValue: number('overrideAbove'),
    operatorOverridesPerHour: number('overridesPerHour'),
    spotCheckRate: roundedShare(scaled('spotCheck', 0.01)),
    offline: {
      storeBound: form.text('storeBound') ?? null,
      maxRiskClass: number('maxRiskClass'),
      hardCount: number('hardCount'),
      maxIsolatedSeconds: rounded(scaled('isolatedMinutes', 60)),
    },
    unknownTag: form.text('unknownTag') ?? null,
    gate: isJson ? gate : { ...gate, severity: severityOfForm(form) },
    tillSales: {
      ...objectIn(rest, 'tillSales'),
      salesPerHour: number('salesPerHour'),
      valuePerHour: number('valuePerHour'),
      codes: form.text('printed') ?? null,
      passByProduct: number('passByProduct'),
    },
  }
}

const rounded = (value: unknown) => (typeof value === 'number' ? Math.round(value) : value)
/** Percent have at most six decimals; the product of the conversion may have more. */
const roundedShare = (value: unknown) => (typeof value === 'number' ? Number(value.toFixed(8)) : value)

function restOfForm(text: string | undefined): Record<string, unknown> {
  const value = jsonOf(text ?? '')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('rest', 'must be a JSON object', 'not_json')
  return value as Record<string, unknown>
}

/** An object in the JSON; undefined if it is missing or something else, which the operation then rejects. */
function objectIn(rest: Readonly<Record<string, unknown>>, name: string): Record<string, unknown> {
  const value = rest[name] ?? {}
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid('rest', `${name} must be an object`, 'not_json')
  return value as Record<string, unknown>
}

function severityOfForm(form: FormFields): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = []
  for (let n = 0; n < SEVERITY_LINES + NEW_LINES; n++) {
    const severity = form.text(`rule${n}-reaction`) ?? 'none'
    if (severity === 'none') continue
    const category = form.text(`rule${n}-category`)
    const fromValue = form.number(`rule${n}-from`)
    lines.push({ severity, ...(category !== undefined && { category }), ...(fromValue !== undefined && { fromValue }) })
  }
  return lines
}

/** The policy that the form's values mean; undefined if they are wrong. */
export function parsedPolicy(sent: unknown): ProtectionPolicy | undefined {
  return ProtectionPolicy.safeParse(sent).data
}

/** The fields, with the values of the policy unless the user typed others. */
export function RuleFields({
  at,
  form,
  values,
}: {
  at: ViewContext
  form: FormState
  values: Readonly<Record<string, string>>
}) {
  const t = at.texts.rules.edit
  const field = (name: string) => ({ form, name, value: values[name] })
  const decimal = (name: string, label: string, hint?: string) => (
    <TextField
      {...field(name)}
      label={label}
      {...(hint !== undefined && { hint })}
      inputmode="decimal"
      maxlength={20}
    />
  )
  return (
    <>
      <fieldset class="stack">
        <legend class="group">{t.staff}</legend>
        {decimal('overrideAbove', t.overrideAbove, t.overrideAboveHint)}
        {decimal('overridesPerHour', t.overridesPerHour)}
        {decimal('spotCheck', t.spotCheck)}
      </fieldset>
      <fieldset class="stack">
        <legend class="group">{t.offline}</legend>
        <Select
          {...field('storeBound')}
          label={t.storeBound}
          choices={(['risk', 'deny'] as const).map((value) => ({ value, label: t.storeBounds[value] }))}
        />
        <Select
          {...field('maxRiskClass')}
          label={t.maxRiskClass}
          choices={RISK_CLASSES.map((each) => {
            const below = riskClassCeiling(each)
            return { value: String(each), label: below === null ? t.any : t.below(at.formats.money(below / 100)) }
          })}
        />
        {decimal('hardCount', t.hardCount)}
        {decimal('isolatedMinutes', t.isolatedMinutes)}
      </fieldset>
      <fieldset class="stack">
        <legend class="group">{t.gate}</legend>
        <Select
          {...field('unknownTag')}
          label={t.unknownTag}
          choices={(['ignore', 'notify', 'siren'] as const).map((value) => ({ value, label: t.unknownTags[value] }))}
        />
        <SeverityLines at={at} form={form} values={values} />
      </fieldset>
      <fieldset class="stack">
        <legend class="group">{t.tills}</legend>
        {decimal('salesPerHour', t.salesPerHour)}
        {decimal('valuePerHour', t.valuePerHour)}
        <Select
          {...field('printed')}
          label={t.codes}
          choices={(['barrier', 'release'] as const).map((value) => ({ value, label: t.codesOf[value] }))}
        />
        {decimal('passByProduct', t.passByProduct)}
      </fieldset>
      <details open={form.errors['rest'] !== undefined}>
        <summary>{t.rest}</summary>
        <TextArea {...field('rest')} label={t.rest} hint={t.restHint} rows={14} />
      </details>
      <div>
        <Submit>{t.preview}</Submit>
      </div>
    </>
  )
}

/** Lines of the rules about alarms: those that there are, and empty ones. */
function SeverityLines({
  at,
  form,
  values,
}: {
  at: ViewContext
  form: FormState
  values: Readonly<Record<string, string>>
}) {
  const t = at.texts.rules.edit
  const shown = { ...values, ...form.values }
  if (shown['severityLines'] === 'json')
    return (
      <>
        <input type="hidden" name="severityLines" value="json" />
        <p class="soft">{t.manyRules}</p>
      </>
    )
  const used = Array.from({ length: SEVERITY_LINES + NEW_LINES }, (_, n) => n).filter(
    (n) => (shown[`rule${n}-reaction`] ?? 'none') !== 'none',
  )
  const count = Math.min((used.at(-1) ?? -1) + 1 + NEW_LINES, SEVERITY_LINES + NEW_LINES)
  const error = form.errors['severity']
  return (
    <fieldset class="stack" {...(error !== undefined && { 'aria-describedby': 'severity-error' })}>
      <legend>
        <strong>{t.severity}</strong>
      </legend>
      <p class="soft small">{t.severityHint}</p>
      {error === undefined ? null : (
        <span class="field-error" id="severity-error">
          {error}
        </span>
      )}
      {Array.from({ length: count }, (_, n) => {
        const field = (name: string) => ({ form, name: `rule${n}-${name}`, value: values[`rule${n}-${name}`] })
        return (
          <fieldset class="filters">
            <legend class="small soft">{t.severityRule(at.formats.number(n + 1))}</legend>
            <TextField {...field('category')} label={t.ruleCategory} maxlength={120} />
            <TextField {...field('from')} label={t.ruleFrom} inputmode="decimal" maxlength={20} />
            <Select
              {...field('reaction')}
              label={t.ruleReaction}
              choices={(['none', 'silent', 'notify', 'siren'] as const).map((value) => ({
                value,
                label: t.reactions[value],
              }))}
            />
          </fieldset>
        )
      })}
    </fieldset>
  )
}
