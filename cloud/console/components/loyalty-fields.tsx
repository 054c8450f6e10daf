import type { Child } from 'hono/jsx'
import {
  PROGRAM_SETTINGS,
  type EarningMethod,
  type LoyaltyProgram,
  type ProgramType,
} from '../../shop/loyalty/schema.ts'
import { numberOf, type FormFields, type FormState } from '../frame/form.ts'
import { cellsOf, cellText, withLineErrors } from '../frame/lines.ts'
import type { PageContext } from '../frame/page.ts'
import { Checkbox, FieldError, TextArea, TextField } from './fields.tsx'

const METHOD = 'method-'
const NUMBERS = ['pointsPerEuro', 'stampsPerVisit', 'cashbackPercent'] as const
const METHODS = PROGRAM_SETTINGS.earningMethods.unwrap().element.options

/** The settings of the form as the operations take them. A reward whose name is known keeps its id. */
export function programInput(form: FormFields, known?: LoyaltyProgram): Record<string, unknown> {
  const ids = new Map(known?.rewards.map(({ name, rewardId }) => [cellText(name), rewardId]))
  const methods = METHODS.filter((method) => form.isSet(`${METHOD}${method}`))
  const entries = (field: string, amount: string) =>
    cellsOf(form.text(field) ?? '').map(([name = '', text = '']) => ({
      name,
      [amount]: text === '' ? undefined : numberOf(text),
    }))
  return {
    name: form.text('name') ?? '',
    ...Object.fromEntries(NUMBERS.map((name) => [name, form.number(name)])),
    pointsValidMonths: form.number('pointsValidMonths') ?? null,
    rewards: entries('rewards', 'cost').map((reward) => ({ ...reward, rewardId: ids.get(String(reward['name'])) })),
    tiers: entries('tiers', 'threshold'),
    // A new program without a choice gets the default of the package.
    ...((known || methods.length > 0) && { earningMethods: methods }),
  }
}

/** A number as a person types it. */
const typed = (value: number | undefined, { language }: PageContext) => {
  const text = value === undefined ? '' : String(value)
  return language === 'de' ? text.replace('.', ',') : text
}

/**
 * A field of some kinds of programs. A new program has no kind yet: the style sheet hides the fields of other kinds than the
 * chosen one, so that a browser without scripts does so, too.
 */
function OfKind({
  kinds,
  kind,
  children,
}: {
  kinds: readonly ProgramType[]
  kind?: ProgramType | undefined
  children?: Child
}) {
  if (kind !== undefined) return kinds.includes(kind) ? <>{children}</> : null
  return <div class={['of-kind', ...kinds.map((each) => `of-${each}`)].join(' ')}>{children}</div>
}

/** The fields of a new or stored program. */
export function ProgramFields({ at, form, program }: { at: PageContext; form: FormState; program?: LoyaltyProgram }) {
  const t = at.texts.loyalty
  const lines = (entries: readonly (readonly [string, number])[] = []) =>
    entries.map(([name, amount]) => `${cellText(name)}; ${typed(amount, at)}`).join('\n')
  return (
    <>
      <TextField form={form} name="name" label={t.name} value={program?.name ?? ''} maxlength={120} required />
      <Methods at={at} form={form} chosen={program?.earningMethods ?? []} />
      <div class="grid">
        <OfKind kinds={['points', 'tier']} kind={program?.type}>
          <TextField
            form={form}
            name="pointsPerEuro"
            label={t.pointsPerEuro}
            value={typed(program?.pointsPerEuro, at)}
            inputmode="decimal"
          />
        </OfKind>
        <OfKind kinds={['stamps', 'points', 'tier']} kind={program?.type}>
          <TextField
            form={form}
            name="stampsPerVisit"
            label={t.stampsPerVisit}
            hint={t.stampsPerVisitHint}
            value={typed(program?.stampsPerVisit, at)}
            inputmode="numeric"
          />
        </OfKind>
        <OfKind kinds={['cashback']} kind={program?.type}>
          <TextField
            form={form}
            name="cashbackPercent"
            label={t.cashbackPercent}
            value={typed(program?.cashbackPercent, at)}
            inputmode="decimal"
          />
        </OfKind>
        <TextField
          form={form}
          name="pointsValidMonths"
          label={t.validMonths}
          hint={t.validMonthsHint}
          value={typed(program?.pointsValidMonths ?? undefined, at)}
          inputmode="numeric"
        />
      </div>
      <TextArea
        form={withLineErrors(at, form, 'rewards')}
        name="rewards"
        label={t.rewards}
        hint={t.rewardsHint}
        value={lines(program?.rewards.map(({ name, cost }) => [name, cost]))}
      />
      <TextArea
        form={withLineErrors(at, form, 'tiers')}
        name="tiers"
        label={t.tiers}
        hint={t.tiersHint}
        value={lines(program?.tiers.map(({ name, threshold }) => [name, threshold]))}
      />
    </>
  )
}

function Methods({ at, form, chosen }: { at: PageContext; form: FormState; chosen: readonly EarningMethod[] }) {
  const t = at.texts.loyalty
  const error = form.errors['earningMethods']
  return (
    <fieldset class="field" {...(error !== undefined && { 'aria-describedby': 'methods-error' })}>
      <legend>{t.methods}</legend>
      <span class="hint">{t.methodsHint}</span>
      {METHODS.map((method) => (
        <Checkbox
          form={form}
          name={`${METHOD}${method}`}
          label={t.methodNames[method]}
          value={chosen.includes(method) ? 'yes' : undefined}
        />
      ))}
      {error === undefined ? null : <FieldError id="methods" error={error} />}
    </fieldset>
  )
}
