import { z } from 'zod'
import { AgentStatus } from '../../edge-agent/http/response-schemas.ts'
import { REGISTRATION_FAULTS } from '../../edge-agent/health/registration.ts'
import { STALE_SECONDS } from '../../edge-agent/items/replica.ts'
import { jsonWithin } from '../api-client.ts'
import { counted } from '../../host/output.ts'
import type { SendRequest } from '../../host/tls/private-ca.ts'
import { PROGRAM_HEADER, readProgramHeader } from '../../policy/version.ts'
import { fault, type Cause, type Finding } from './finding.ts'

const ANSWER_WITHIN_MS = 3_000
/** More rows than a connected agent ever has waiting. */
const QUEUE_LIMIT = 1_000

interface AgentQuestion {
  readonly url: string
  /** Id of the agent whose data folder is checked. */
  readonly agentId: string
  /** Undefined if the credential file is missing. */
  readonly credential: string | undefined
  readonly data: string
  readonly send: SendRequest
}

/** An agent of another release may lack fields, or have more. */
const Status = z.object({
  ...AgentStatus.shape,
  isRestartDue: z.boolean().catch(false),
  devices: z.array(
    z.object({
      deviceId: z.string(),
      name: z.string().nullable().catch(null),
      state: z.string(),
      detail: z.string(),
      findings: z.array(z.object({ code: z.string(), detail: z.string(), isWarning: z.boolean() })).catch([]),
    }),
  ),
})
type Status = z.infer<typeof Status>

/**
 * Id of an agent that answers at this address and is not this one. Undefined if nothing or another program answers, or an
 * agent that does not name its id. Sends no credential, because any program may use the address.
 */
export async function otherAgentAt({
  url,
  agentId,
  send,
}: Pick<AgentQuestion, 'url' | 'agentId' | 'send'>): Promise<string | undefined> {
  try {
    const answer = await send(`${url}/healthz`, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    await answer.body?.cancel()
    const found = readProgramHeader(answer.headers.get(PROGRAM_HEADER))?.agentId
    return found === agentId ? undefined : found
  } catch {
    return undefined
  }
}

/** Asks the running agent for its faults. Undefined if nothing answers at this address. */
export async function askAgent({
  url,
  agentId,
  credential,
  data,
  send,
}: AgentQuestion): Promise<Finding[] | undefined> {
  let answer: Response
  let body: unknown
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS)
  try {
    answer = await send(`${url}/v1/status`, {
      headers: { authorization: `Bearer ${credential ?? 'none'}` },
      redirect: 'manual',
      signal,
    })
    body = await jsonWithin(answer, signal).catch(() => undefined)
  } catch {
    return undefined
  }
  const { status } = answer
  if (status === 401 || status === 403)
    return [
      fault(
        'agent',
        'credential_refused',
        `${url} refuses the credential of ${data}: run untag edge credential --data ${data} --renew as the user of the agent, and check that --data is the folder of this agent`,
      ),
    ]
  const read = Status.safeParse(body)
  if (status !== 200 || !read.success)
    return [fault('agent', 'agent_silent', `${url} does not answer like an agent (${status}): restart the agent`)]
  if (read.data.agentId !== agentId)
    return [
      fault(
        'agent',
        'agent_silent',
        `the agent ${read.data.agentId} answers at ${url}, not ${agentId} of ${data}: stop it, or choose its folder with --data`,
      ),
    ]
  return statusFindings(read.data, url)
}

/** What a status says, with the next step for each fault. */
function statusFindings(status: Status, url: string): Finding[] {
  return [
    { what: 'agent', state: 'ok', detail: `${status.agentId} runs at ${url}, release ${status.release}` },
    ...connectionFindings(status),
    ...ledgerFindings(status),
    ...policyFindings(status),
    itemsFinding(status),
    ...(status.isRestartDue ? [restartFinding()] : []),
    ...(status.emergency === null ? [] : [emergencyFinding()]),
    ...status.devices.flatMap(deviceFindings),
  ]
}

function restartFinding(): Finding {
  const detail = 'changes of the page /setup are saved and not in use yet: restart the agent'
  return { what: 'configuration', state: 'note', detail }
}

/** Time that an agent may need to connect after its start, or again after a restart of the cloud, ms. */
const CONNECTING_MS = 10_000

function isStarting(offlineSince: string | null | undefined, now: string): boolean {
  return typeof offlineSince === 'string' && Date.parse(now) - Date.parse(offlineSince) < CONNECTING_MS
}

function connectionFindings({ online, offlineSince, broker, queueDepth, clock, now }: Status): Finding[] {
  const waiting = counted(queueDepth, 'event')
  return [
    online
      ? { what: 'connection', state: 'ok', detail: 'the agent is connected to the cloud' }
      : isStarting(offlineSince, now)
        ? {
            what: 'connection',
            state: 'note',
            detail: 'the agent is connecting to the cloud: ask again in a few seconds',
          }
        : fault(
            'connection',
            'cloud_unreachable',
            `the agent has been offline since ${offlineSince ?? 'its start'}: its log says why. It goes on deciding, and sends its events later`,
          ),
    ...(online
      ? [
          broker
            ? { what: 'broker', state: 'ok' as const, detail: 'the agent is connected to the broker' }
            : fault(
                'broker',
                'broker_unreachable',
                'the agent has no connection to the broker, so changes arrive up to 15 s late: allow MQTT to the cloud (1883, with TLS 8883) in firewall and proxy',
              ),
        ]
      : []),
    queueDepth > QUEUE_LIMIT
      ? fault(
          'queue',
          'queue_grows',
          `${waiting} wait to be sent to the cloud: check the connection and the free space of both`,
        )
      : { what: 'queue', state: 'ok', detail: `${waiting} waiting to be sent to the cloud` },
    ...(clock === 'none'
      ? [fault('trusted time', 'clock_untrusted', 'the agent does not know the time: connect it, or set its clock')]
      : []),
  ]
}

const DOUBTS: Record<NonNullable<Status['ledgerDoubt']>, string> = {
  revoked: 'this agent was revoked and releases nothing: enrol it again with untag edge enrol --replace',
  forked: 'two copies of this agent run: remove one, then call resolveAgentFork',
  put_back: 'its entries were restored from a copy: it releases nothing offline for some minutes. Keep it connected',
}

function ledgerFindings({ fault: why, ledgerDoubt }: Status): Finding[] {
  if (why !== null)
    return [
      fault('ledger', 'ledger_unavailable', `the agent moves no device (${why}): free disk space, then restart it`),
    ]
  if (ledgerDoubt !== null) return [fault('ledger', ledgerDoubt, DOUBTS[ledgerDoubt])]
  return [{ what: 'ledger', state: 'ok', detail: 'trusted' }]
}

function policyFindings({ policyVersion, stage, neededRelease }: Status): Finding[] {
  if (policyVersion === null)
    return [fault('policy', 'no_policy', 'the agent has no policy, so it releases nothing: connect it to the cloud')]
  if (neededRelease !== null)
    return [fault('policy', 'agent_too_old', `the policy needs release ${neededRelease}: upgrade this agent`)]
  if (stage !== 'fresh')
    return [fault('policy', 'policy_stale', `version ${policyVersion} is old (${stage}): connect the agent`)]
  return [{ what: 'policy', state: 'ok', detail: `version ${policyVersion}` }]
}

/** Title of the findings about the agent's copy of the store's items. */
export const ITEMS = 'items of the store'

function itemsFinding({ items: { known, ageSeconds }, online }: Status): Finding {
  const tags = counted(known, 'tag')
  if (ageSeconds === null)
    return {
      what: ITEMS,
      state: 'note',
      detail: `${online ? `the agent is fetching them, ${tags} so far` : 'there is no complete copy yet, and the agent is offline'}: until the copy is complete, gates alarm for paid goods, too`,
    }
  if (ageSeconds <= STALE_SECONDS) return { what: ITEMS, state: 'ok', detail: `${tags}, complete ${ageSeconds} s ago` }
  const minutes = Math.round(ageSeconds / 60)
  return {
    what: ITEMS,
    state: 'note',
    detail: `${tags}, complete ${counted(minutes, 'minute')} ago: gates do not know what was paid since then`,
  }
}

export function emergencyFinding(): Finding {
  return fault(
    'emergency',
    'emergency',
    'an emergency input of the agent is active, and the emergency exits are open: reset the fire panel or switch, or check its wire. emergency.lost in /v1/status lists boards that do not respond',
  )
}

/** Health of one device, from an agent or from an own connection. */
interface CheckedDevice {
  readonly deviceId: string
  readonly name?: string | null
  readonly state: string
  readonly detail: string
  readonly findings: readonly { readonly code: string; readonly detail: string; readonly isWarning: boolean }[]
}

/** The findings name the setting to change. Other faults get the next step here. */
export function deviceFindings({ deviceId, name, state, detail, findings }: CheckedDevice): Finding[] {
  const found = findings.map((each): Finding => {
    const text = `${each.code}: ${each.detail}`
    return each.isWarning ? { what: deviceId, state: 'note', detail: text } : fault(deviceId, each.code as Cause, text)
  })
  if (found.some((each) => each.state === 'wrong')) return found
  const title = name ? `${name}: ` : ''
  if (state === 'ready') return [{ what: deviceId, state: 'ok', detail: `${title}ready, ${detail}` }, ...found]
  const refusal = REGISTRATION_FAULTS.find((each) => each === state)
  return [
    refusal === undefined
      ? fault(
          deviceId,
          'device_absent',
          `${title}${state}, ${detail}. Check its power, its cable, and link in the configuration`,
        )
      : fault(deviceId, refusal, `${title}${state}: ${detail}`),
    ...found,
  ]
}
