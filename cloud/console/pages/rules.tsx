import type { z } from 'zod'
import { PROTECTION_ACTIONS } from '../../../policy/vocabulary.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchProtectionPolicy, updateProtectionPolicy } from '../../protection/store-policy/policy-operations.ts'
import { simulateProtectionPolicy } from '../../protection/store-policy/simulate-policy.ts'
import { Badge, Card, EmptyState, Figures } from '../components/card.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Live } from '../components/live.tsx'
import { Notice } from '../components/notice.tsx'
import { Moment, Table } from '../components/table.tsx'
import { FormFields } from '../frame/form.ts'
import { deviceLabel } from '../components/device-label.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { parsedPolicy, policyOfForm, ruleFieldOf, RuleFields, valuesOfPolicy } from './rule-form.tsx'
import { categoryName, differencesOf, ruleLines, verdictOf, workflowsOf } from './rule-words.ts'

type Known = z.output<typeof fetchProtectionPolicy.response>
type Agent = z.output<typeof fetchAgents.response>['agents'][number]
type Replay = z.output<typeof simulateProtectionPolicy.response>

/** What the page shows. Without a policy, the package of the store has none. */
interface RulesView {
  readonly known: Known | undefined
  readonly agents: readonly Agent[]
  readonly agentsTotal: number
  /** Names of devices by id. */
  readonly devices: ReadonlyMap<string, string>
}

type View = ViewContext<RulesView>

const AGENTS_LIMIT = 100
const DEVICES_LIMIT = 100
/** Changed decisions that the look at a change lists. */
const EXAMPLES = 20
const RULES_PATH = '/console/rules'
const MAY_CHANGE = rolesFrom('admin')

/** Request of the look at a change, and of its publication. */
function requestOf(form: FormFields, at: PageContext) {
  return { storeId: at.store?.storeId, policy: policyOfForm(form) }
}

/** The protection policy of a store: in words, with the agents that have it, and its change in two steps. */
export const rulesPage = page<RulesView>({
  path: RULES_PATH,
  roles: rolesFrom('manager'),
  scope: 'store',
  navigation: { group: 'settings', icon: 'shield' },
  live: ['agents', 'protection'],
  title: (texts) => texts.rules.title,
  lead: (at) => at.texts.rules.lead,
  actions: {
    preview: {
      operation: simulateProtectionPolicy,
      roles: MAY_CHANGE,
      input: requestOf,
      fieldOf: ruleFieldOf,
      done: () => '',
      showsWithData: true,
      show: (result, at, { input }) => <Preview at={at as View} replay={result as Replay} sent={input['policy']} />,
    },
    publish: {
      operation: updateProtectionPolicy,
      roles: MAY_CHANGE,
      input: (form, at) => ({ ...requestOf(form, at), expectedVersion: form.number('version') ?? null }),
      fieldOf: ruleFieldOf,
      done: (texts) => texts.rules.preview.published,
      next: () => RULES_PATH,
    },
    edit: {
      // Leads back to the form with what was typed; the operation only reads.
      operation: fetchProtectionPolicy,
      roles: MAY_CHANGE,
      input: (_, at) => ({ storeId: at.store?.storeId }),
      done: () => '',
      showsWithData: true,
      show: (_result, at) => <Editor at={at as View} />,
    },
  },
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const known = await at.runIfAllowed(fetchProtectionPolicy, { storeId })
    if (!known) return { known, agents: [], agentsTotal: 0, devices: new Map() }
    const agents = await at.runIfAllowed(fetchAgents, { storeId, limit: AGENTS_LIMIT })
    const devices = await at.runIfAllowed(fetchDevices, { storeId, limit: DEVICES_LIMIT })
    return {
      known,
      agents: (agents?.agents ?? []).filter(({ state }) => state !== 'revoked'),
      agentsTotal: agents?.total ?? 0,
      devices: new Map((devices?.devices ?? []).map((device) => [device.deviceId, deviceLabel(at, device)])),
    }
  },
  view(at) {
    const { known } = at.data
    const t = at.texts.rules
    if (!known)
      return (
        <Card>
          <EmptyState icon="shield" title={t.notHere}>
            {t.notHereText}
          </EmptyState>
        </Card>
      )
    if (at.has(MAY_CHANGE) && (at.query.has('edit') || at.form.id !== undefined)) return <Editor at={at} />
    return (
      <div class="stack wide">
        <Live at={at} id="rules">
          <Summary at={at} known={known} />
          <Agents at={at} />
        </Live>
        <div class="row">
          {at.has(MAY_CHANGE) ? (
            <a class="button main" href={`${RULES_PATH}?edit`}>
              {t.change}
            </a>
          ) : null}
          {at.opens('/console/rules/decisions') ? (
            <a class="button" href="/console/rules/decisions">
              {t.decisions}
            </a>
          ) : null}
        </div>
        <Sentences at={at} policy={known.policy} />
        <Categories at={at} policy={known.policy} />
      </div>
    )
  },
})

function moneyOf(at: PageContext, loss: number | null): string {
  return loss === null ? at.texts.rules.unlimited : at.formats.money(loss)
}

function Summary({ at, known }: { at: View; known: Known }) {
  const t = at.texts.rules
  const { number } = at.formats
  const { agents } = at.data
  const has = agents.filter(({ isPolicyCurrent }) => isPolicyCurrent === true).length
  return (
    <div class="money-figures">
      <Figures
        figures={[
          { label: t.versionOfRules, value: number(known.version), note: t.versionNote },
          { label: t.loss, value: moneyOf(at, known.worstCaseLoss), note: t.lossNote },
          {
            label: t.agentsHave,
            value: t.ofAgents(number(has), number(agents.length)),
            tone: has < agents.length ? 'warn' : 'plain',
          },
        ]}
      />
    </div>
  )
}

function Agents({ at }: { at: View }) {
  const t = at.texts.rules
  const { agents, agentsTotal } = at.data
  return (
    <Card title={t.agents} flush>
      {agents.length === 0 ? (
        <EmptyState icon="device" title={t.noAgents}>
          {t.noAgentsText}
        </EmptyState>
      ) : (
        <Table
          caption={t.agents}
          rows={agents}
          columns={[
            { label: t.agent, kind: 'head', cell: ({ name }) => name },
            { label: t.state, cell: (agent) => <AgentState at={at} agent={agent} /> },
            {
              label: t.seen,
              cell: ({ lastSeenAt }) => (
                <Moment ms={Date.parse(lastSeenAt)} text={at.formats.ago(Date.parse(lastSeenAt), at.nowMs)} />
              ),
            },
          ]}
        />
      )}
      {agentsTotal > AGENTS_LIMIT ? (
        <p class="soft small">{t.firstAgents(at.formats.number(AGENTS_LIMIT), at.formats.number(agentsTotal))}</p>
      ) : null}
    </Card>
  )
}

function AgentState({ at, agent: { isPolicyCurrent, neededRelease } }: { at: View; agent: Agent }) {
  const t = at.texts.rules
  if (isPolicyCurrent === undefined) return <Badge>{t.unknown}</Badge>
  if (isPolicyCurrent) return <Badge tone="ok">{t.has}</Badge>
  return <Badge tone="warn">{neededRelease === undefined ? t.behind : t.needs(neededRelease)}</Badge>
}

function namesOf({ data }: View): ReadonlyMap<string, string> {
  return new Map(data.agents.map(({ agentId, name }) => [agentId, name]))
}

function Sentences({ at, policy }: { at: View; policy: ProtectionPolicy }) {
  const t = at.texts.rules
  return (
    <Card title={t.inWords} flush>
      <Table
        caption={t.inWords}
        rows={ruleLines(at, policy, namesOf(at))}
        columns={[
          { label: t.rule, kind: 'head', cell: ({ topic }) => topic },
          { label: t.says, cell: ({ text }) => text },
        ]}
      />
    </Card>
  )
}

function Categories({ at, policy }: { at: View; policy: ProtectionPolicy }) {
  const t = at.texts.rules
  const rows = Object.entries(policy.allowedActionsByCategory)
  return (
    <Card title={t.categories} flush={rows.length > 0}>
      {rows.length === 0 ? (
        <p>{t.sentences.noCategories}</p>
      ) : (
        <Table
          caption={t.categories}
          rows={rows}
          columns={[
            { label: t.category, kind: 'head', cell: ([name]) => categoryName(at, name) },
            {
              label: t.allowed,
              cell: ([, allowed]) => (
                <ul>
                  {PROTECTION_ACTIONS.flatMap((action) => {
                    const workflows = workflowsOf(at, allowed, action)
                    return workflows === undefined ? [] : [<li>{t.sentences.action(t.actions[action], workflows)}</li>]
                  })}
                </ul>
              ),
            },
            {
              label: t.notAllowed,
              cell: ([, allowed]) => (
                <ul>
                  {PROTECTION_ACTIONS.filter((action) => workflowsOf(at, allowed, action) === undefined).map(
                    (action) => (
                      <li>{t.actions[action]}</li>
                    ),
                  )}
                </ul>
              ),
            },
          ]}
        />
      )}
    </Card>
  )
}

/** The form. After a conflict it says what the typed values change in the policy that applies. */
function Editor({ at }: { at: View }) {
  const t = at.texts.rules.edit
  const { known } = at.data
  if (!known) return null
  // A refused publication comes back to this form, with its values.
  const typed = at.form.values
  const form = { ...at.form, errors: withJsonError(at) }
  const version = Number(typed['version'] ?? known.version)
  const isConflict = at.form.message !== undefined && version !== known.version
  return (
    <div class="stack wide">
      {isConflict ? (
        // The attribute says that the reason of the refusal is here.
        <div data-rejected="">
          <Notice tone="warn" title={t.conflict(at.formats.number(known.version))} isUrgent>
            {t.conflictText}
          </Notice>
        </div>
      ) : null}
      {isConflict ? <TypedDifferences at={at} policy={known.policy} /> : null}
      <Card title={t.title}>
        <ActionForm at={at} action="preview">
          <p class="soft">{t.lead}</p>
          <input type="hidden" name="version" value={String(known.version)} />
          <RuleFields at={at} form={form} values={valuesOfPolicy(known.policy)} />
        </ActionForm>
      </Card>
      <p>
        <a class="button" href={RULES_PATH}>
          {at.texts.frame.cancel}
        </a>
      </p>
    </div>
  )
}

/** Errors of the form; that of the JSON in words. */
function withJsonError(at: View): Readonly<Record<string, string>> {
  const { errors } = at.form
  return errors['rest'] === undefined ? errors : { ...errors, rest: at.texts.rules.edit.restWrong }
}

function TypedDifferences({ at, policy }: { at: View; policy: ProtectionPolicy }) {
  const typed = parsedPolicy(policyOfForm(new FormFields(new URLSearchParams(at.form.values))))
  if (!typed) return null
  const { home, homeEpoch } = policy
  return <Differences at={at} before={policy} after={{ ...typed, home, homeEpoch }} />
}

function Differences({ at, before, after }: { at: View; before: ProtectionPolicy; after: ProtectionPolicy }) {
  const t = at.texts.rules.preview
  const rows = differencesOf(at, before, after, namesOf(at))
  return (
    <Card title={t.differences} flush={rows.length > 0}>
      {rows.length === 0 ? (
        <p>{t.unchanged}</p>
      ) : (
        <Table
          caption={t.differences}
          rows={rows}
          columns={[
            { label: at.texts.rules.rule, kind: 'head', cell: ({ topic }) => topic },
            { label: t.before, cell: (row) => row.before },
            { label: t.after, cell: (row) => row.after },
          ]}
        />
      )}
    </Card>
  )
}

/** Second step: what would change, and the button that publishes it. */
function Preview({ at, replay, sent }: { at: View; replay: Replay; sent: unknown }) {
  const t = at.texts.rules.preview
  const { known } = at.data
  const after = parsedPolicy(sent)
  if (!known || !after) return null
  const { home, homeEpoch } = known.policy
  const isConflict = at.form.values['version'] !== String(known.version)
  const { conflict, conflictText } = at.texts.rules.edit
  return (
    <div class="stack wide">
      <h2>{t.title}</h2>
      {isConflict ? (
        <Notice tone="warn" title={conflict(at.formats.number(known.version))} isUrgent>
          {conflictText}
        </Notice>
      ) : null}
      <Differences at={at} before={known.policy} after={{ ...after, home, homeEpoch }} />
      <div class="money-figures">
        <Figures
          figures={[
            { label: t.lossNow, value: moneyOf(at, known.worstCaseLoss), note: at.texts.rules.lossNote },
            { label: t.lossThen, value: moneyOf(at, replay.worstCaseLoss), note: at.texts.rules.lossNote },
          ]}
        />
      </div>
      <Replayed at={at} replay={replay} />
      <div class="row">
        {isConflict ? null : (
          <ActionForm at={at} action="publish">
            <Typed at={at} />
            <Submit>{t.publish}</Submit>
          </ActionForm>
        )}
        <ActionForm at={at} action="edit">
          <Typed at={at} />
          <Submit main={false}>{t.back}</Submit>
        </ActionForm>
        <a class="button" href={RULES_PATH}>
          {t.backToRules}
        </a>
      </div>
    </div>
  )
}

/** What was typed, for the next step. */
function Typed({ at }: { at: View }) {
  return (
    <>
      {Object.entries(at.form.values).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  )
}

function Replayed({ at, replay }: { at: View; replay: Replay }) {
  const t = at.texts.rules.preview
  const { number } = at.formats
  const shown = replay.changed.slice(0, EXAMPLES)
  const title =
    replay.decisions === 0 ? t.replayedNone : t.replayed(number(replay.changedTotal), number(replay.decisions))
  return (
    <Card title={title} flush={shown.length > 0}>
      {shown.length === 0 ? (
        <p class="soft">{t.replayText}</p>
      ) : (
        <Table
          caption={t.examples}
          isCaptionShown={false}
          rows={shown}
          columns={[
            {
              label: t.time,
              kind: 'head',
              cell: ({ occurredAt, eventId }) => (
                <a href={`/console/rules/decisions?q=${encodeURIComponent(eventId)}`}>
                  <Moment ms={Date.parse(occurredAt)} text={at.formats.moment(Date.parse(occurredAt))} />
                </a>
              ),
            },
            { label: t.what, cell: ({ protectionAction }) => at.texts.rules.actions[protectionAction] },
            { label: t.device, cell: ({ deviceId = '' }) => at.data.devices.get(deviceId) ?? deviceId },
            { label: t.before, cell: ({ before }) => verdictOf(at, before) },
            { label: t.after, cell: (row) => verdictOf(at, row.after) },
          ]}
        />
      )}
    </Card>
  )
}
