import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { AgentError } from '../../clients/typescript/error.ts'
import { createAgentClient } from '../../clients/typescript/agent-client.ts'
import type { WalkRecording } from '../../edge-agent/lanes/gate/walk-recorder.ts'
import { openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import { openMetadata } from '../../edge-agent/ledger/file/watermark.ts'
import { LOCAL_URLS } from '../../edge-agent/ledger/pairings.ts'
import {
  gateFault,
  reportHtml,
  reportLines,
  walkTestResult,
  type CommissioningReport,
  type TestTagKind,
  type Walk,
} from '../../edge-agent/setup/walk-test.ts'
import { pause } from '../../policy/platform.ts'
import { credentialFile } from '../../host/credential-file.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { printLine, printNote, printResult, writesJson } from '../../host/output.ts'
import { realPlatform } from '../../host/platform.ts'
import type { EDGE_WALK_TEST_OPTIONS } from '../../host/settings/edge.ts'
import { loadConfig } from './edge.ts'
import { assertEnrolled } from './edge-access.ts'

type Settings = Values<typeof EDGE_WALK_TEST_OPTIONS>

/** One planned walk. */
interface PlannedWalk {
  position: string
  kind: TestTagKind
  tag: string
}

const POLL_MS = 200
const CALL_LIMIT_MS = 5_000
/** Maximum number of walks of one test. */
const WALK_LIMIT = 500
/** Settings of a reader that the report shows. Other settings may be secrets. */
const SHOWN_SETTINGS = [
  'driver',
  'antennas',
  'passageInput',
  'siren',
  'amber',
  'green',
  'transmitPowerDbm',
  'session',
  'tagPopulation',
  'rfMode',
  'nearDbm',
  'readOnBeam',
]

/** Leads an operator through the walk test of a gate, prints the report, and exits with 1 if the gate did not pass. */
export async function runWalkTest(settings: Settings): Promise<void> {
  const { unpaid, paid, device, operator } = settings
  if (device === undefined) throw new WrongUsage(['--device is missing: name the gate, such as dev_…'])
  if (operator === undefined) throw new WrongUsage(['--operator is missing: name the person who tests the gate'])
  if (unpaid === undefined || paid === undefined)
    throw new WrongUsage(['--unpaid and --paid are missing: name the EPC of one unpaid and of one paid test tag'])
  const plan = planned(settings, unpaid.toUpperCase(), paid.toUpperCase())
  const agent = agentOf(settings)
  const { status, gate } = await gateOf(agent, device)
  const testedAt = new Date(realPlatform().clock.wall()).toISOString()
  const walks = await carryOut(plan, settings, {
    start: () => agent.call('POST', '/v1/setup/walk-test', { deviceId: device, seconds: settings.seconds }),
    finish: (walk) => finishWalk(agent, device, walk),
  })
  const report: CommissioningReport = {
    testedAt,
    operator,
    gate,
    store: status.storeName ?? status.storeId,
    agentId: status.agentId,
    release: status.release,
    policyVersion: status.policyVersion,
    settings: settings.config === undefined ? {} : readerSettings(settings.config, device),
    minPercent: settings.minPercent,
    result: walkTestResult(walks, settings.minPercent),
    walks,
  }
  if (settings.out !== undefined) writeReport(settings.out, report)
  printResult(settings.json, report, ['', ...reportLines(report)])
  if (report.result.faults.length > 0) process.exitCode = 1
}

function planned({ positions, repeats }: Settings, unpaid: string, paid: string): PlannedWalk[] {
  const named = positions
    .split(';')
    .map((position) => position.trim())
    .filter((position) => position !== '')
  if (named.length === 0 || named.length * (repeats + 1) > WALK_LIMIT)
    throw new WrongUsage([`--positions: name 1 position or more, separated by ";", for at most ${WALK_LIMIT} walks`])
  return named.flatMap((position) => [
    ...Array.from({ length: repeats }, (): PlannedWalk => ({ position, kind: 'unpaid', tag: unpaid })),
    { position, kind: 'paid' as const, tag: paid },
  ])
}

/** Runs all walks one after the other. At a terminal, the operator starts each walk with Enter. */
async function carryOut(
  plan: readonly PlannedWalk[],
  { seconds }: Settings,
  recording: { start(): Promise<unknown>; finish(walk: PlannedWalk): Promise<Walk> },
): Promise<Walk[]> {
  const isTerminal = process.stdin.isTTY
  const lines = isTerminal ? createInterface({ input: process.stdin }) : undefined
  const entered = lines?.[Symbol.asyncIterator]()
  // With --json only the report goes to stdout.
  const say = writesJson() ? printNote : printLine
  const walks: Walk[] = []
  for (const [index, walk] of plan.entries()) {
    const task = `walk ${index + 1} of ${plan.length}: carry the ${walk.kind} tag ${walk.tag} out, ${walk.position}.`
    if (entered) {
      say(`${task} Press Enter to start.`)
      await entered.next()
    }
    // A walk that began before the recording would look like the second half of a walk.
    await recording.start()
    say(entered ? `  Walk now, within ${seconds} s.` : task)
    const done = await recording.finish(walk)
    say(`  ${done.hasLeft ? `detected, ${done.hasAlarmed ? 'alarm' : 'no alarm'} (${done.reason})` : 'not detected'}`)
    walks.push(done)
  }
  lines?.close()
  return walks
}

/** Waits until the tag has left or the time of the recording is over. */
async function finishWalk(agent: AgentCalls, deviceId: string, walk: PlannedWalk): Promise<Walk> {
  const { timers } = realPlatform()
  for (;;) {
    await pause(timers, POLL_MS)
    const path = `/v1/setup/walk-test?deviceId=${encodeURIComponent(deviceId)}`
    const { tags, isOver } = (await agent.call('GET', path)) as WalkRecording
    const seen = tags.find(({ epc, tagUid }) => epc === walk.tag || tagUid === walk.tag)
    if (!seen?.left && !isOver) continue
    const severity = seen?.left?.severity
    return {
      ...walk,
      reads: seen?.reads ?? 0,
      hasLeft: severity !== undefined,
      hasAlarmed: severity === 'siren' || severity === 'notify',
      reason: seen?.left?.reason ?? null,
    }
  }
}

interface AgentCalls {
  readonly client: ReturnType<typeof createAgentClient>
  call(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown>
}

function agentOf({ data, agent }: Settings): AgentCalls {
  assertEnrolled(data)
  const baseUrl = (agent ?? localUrl(data)).replace(/\/+$/, '')
  const credential = credentialFile(data, realPlatform().random).ensure()
  return {
    client: createAgentClient({ baseUrl, credential }),
    async call(method, path, body) {
      const text = body && JSON.stringify(body)
      const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
      const signal = AbortSignal.timeout(CALL_LIMIT_MS)
      const response = await fetch(`${baseUrl}${path}`, { method, headers, signal, ...(text && { body: text }) })
      const answer = (await response.json()) as { error?: string; fix?: string }
      if (!response.ok) throw new Error([answer.error, answer.fix].filter(Boolean).join(': '))
      return answer
    },
  }
}

/** Address of the agent on this machine, as the agent stored it at its last start. */
function localUrl(data: string): string {
  const db = openLedgerFile(join(data, 'ledger.db'))
  try {
    const urls = JSON.parse(openMetadata(db).get(LOCAL_URLS) ?? '[]') as string[]
    return urls.find((url) => ['127.0.0.1', 'localhost'].includes(new URL(url).hostname)) ?? urls[0] ?? LOCAL_URL
  } finally {
    db.close()
  }
}

const LOCAL_URL = 'http://127.0.0.1:8090'

async function gateOf({ client }: AgentCalls, deviceId: string) {
  const status = await client.status().catch((error: unknown) => {
    if (error instanceof AgentError && error.code === 'network')
      throw new Error('the agent does not answer: start it with untag edge, or name its address with --agent')
    throw error
  })
  const gates = status.devices.filter(({ deviceType }) => deviceType === 'exit_gate')
  const gate = gates.find((one) => one.deviceId === deviceId)
  if (!gate)
    throw new WrongUsage([
      `--device: this agent has no gate ${deviceId}; its gates are: ${gates.map((one) => one.deviceId).join(', ') || 'none'}`,
    ])
  const fault = gateFault(gate)
  if (fault !== undefined) throw new Error(fault)
  const { name, driver, identity } = gate
  return {
    status,
    gate: {
      deviceId,
      name,
      driver,
      reader: identity?.description ?? 'unknown',
      firmware: identity?.firmwareVersion ?? 'unknown',
      serialNumber: identity?.serialNumber ?? 'unknown',
    },
  }
}

/** Settings of the gate and of the readers that feed it, from the configuration file of the agent. */
function readerSettings(file: string, deviceId: string): Record<string, unknown> {
  const devices = loadConfig(file).devices as readonly (Record<string, unknown> & { deviceId: string })[]
  const parts = devices.filter((device) => device.deviceId === deviceId || device['feeds'] === deviceId)
  const shown = (device: Record<string, unknown>) =>
    Object.fromEntries(SHOWN_SETTINGS.flatMap((key) => (device[key] === undefined ? [] : [[key, device[key]]])))
  return Object.fromEntries(parts.map((device) => [device.deviceId, shown(device)]))
}

function writeReport(file: string, report: CommissioningReport): void {
  if (file.endsWith('.html')) writeFileSync(file, reportHtml(report))
  else if (file.endsWith('.json')) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  else writeFileSync(file, `${reportLines(report).join('\n')}\n`)
}
