import type { Actuators } from '../nodes/actuators.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { gateReader, type GateReader } from '../nodes/gate-reader.ts'
import { readerOf, type TillEquipment, type TillGood } from '../nodes/till-equipment.ts'
import type { TillBook, TrackedReport } from '../oracles/till-book.ts'
import type { TillOracle } from '../oracles/till-oracle.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'

export interface TillGatesParts {
  core: Core
  agents: readonly AgentNode[]
  /** Names of the agents, which are installed later. */
  names: readonly string[]
  equipment: TillEquipment
  devices: Actuators
  book: TillBook
  oracle: TillOracle
}

interface Assessed {
  readonly reason: string
  readonly severity: string
}

/** Time from the last read of a tag to its assessment, ms. */
const ASSESSED_MS = 600
const WALK_SECONDS = 3

/** The gates of the agents, with their readers. Shoppers of tills carry goods through, and the oracle compares. */
export class TillGates {
  /** Replaces the supervisor of the agents. */
  readonly supervisor: Actuators['supervisor']
  readonly #parts: TillGatesParts
  readonly #readers = new Map<string, GateReader>()
  /** Gates at which tags pass: one shopper at a time. */
  readonly #busy = new Set<string>()
  /** Receipts that agents signed. */
  readonly #receipts = new Map<TrackedReport, string>()
  /** Agents whose barrier opened, and for which sale. */
  readonly #openings = new Set<string>()

  constructor(parts: TillGatesParts) {
    const { core, names, devices } = parts
    this.#parts = parts
    let { supervisor } = devices
    for (const name of names) {
      const reader = gateReader({ ...devices, supervisor }, name, readerOf(name), core.scheduler)
      this.#readers.set(name, reader)
      supervisor = reader.supervisor
    }
    this.supervisor = supervisor
  }

  /**
   * Carries goods through a gate, and compares what it does with what the contract promises. `where`: the agent at whose
   * gate the goods must alarm; by default any gate, and the oracle knows.
   */
  async pass(goods: readonly TillGood[], chance: Chance, where?: AgentNode): Promise<void> {
    const { agents, book, oracle } = this.#parts
    const node = where ?? chance.one(agents)
    const { agent } = node
    if (!agent) return
    const epcs = goods.map(({ epc }) => epc)
    const expectedOf = (epc: string) => (where ? 'alarm' : oracle.expected(node.name, epc))
    const known = epcs.filter((epc) => agent.items.find('epc', epc) !== undefined)
    const before = known.map((epc) => ({ epc, version: book.versionOf(epc), expected: expectedOf(epc) }))
    const seen = await this.carry(node, epcs)
    for (const { epc, version, expected } of before) {
      const left = seen.get(epc)
      // Judges only if nothing was reported meanwhile.
      const isSame = version === book.versionOf(epc) && expected === expectedOf(epc)
      if (left && isSame && expected !== undefined) this.#judge(node, epc, expected, left)
    }
  }

  /** Carries tags through the gate of an agent. Returns how the gate assessed each; none if the agent stopped meanwhile. */
  async carry(node: AgentNode, epcs: readonly string[]): Promise<ReadonlyMap<string, Assessed>> {
    const { core, agents, equipment } = this.#parts
    const gate = equipment.gates[agents.indexOf(node)] ?? ''
    const { agent } = node
    if (!agent || this.#busy.has(gate)) return new Map()
    this.#busy.add(gate)
    agent.gates.startWalk(gate, WALK_SECONDS)
    await this.#readers.get(node.name)?.carry(epcs, 'out')
    await core.scheduler.pause(ASSESSED_MS)
    this.#busy.delete(gate)
    if (!node.machine.isUp || node.agent !== agent) return new Map()
    const seen = agent.gates.walks.recording(gate)?.tags ?? []
    return new Map(seen.flatMap(({ epc, left }) => (epc !== undefined && left ? [[epc, left] as const] : [])))
  }

  noteReceipt(report: TrackedReport, receipt: unknown): void {
    if (typeof receipt === 'string') this.#receipts.set(report, receipt)
  }

  /** Presents the receipt that an agent signed at barriers: it opens once at each agent, and not after its void. */
  async present(report: TrackedReport, chance: Chance): Promise<void> {
    const { agents, book, core } = this.#parts
    const receipt = this.#receipts.get(report)
    for (let n = chance.between(1, 3); n > 0 && receipt !== undefined; n--) {
      const node = chance.one(agents)
      const isVoid = book.isVoidAt(node.name, report)
      if ((await this.#open(node, receipt)) !== true) continue
      const opening = `${node.name} ${report.sale}`
      core.trace.add(node.name, `opens for the receipt of ${report.sale}`)
      this.#parts.oracle.judged.opened++
      if (isVoid) core.violate('alarms', `${node.name} opens for the sale ${report.sale}, whose void it has`)
      if (this.#openings.has(opening) && !book.restoredPlaces.has(node.name))
        core.violate('I1', `${node.name} opens twice for the sale ${report.sale}`)
      this.#openings.add(opening)
    }
  }

  /** A shopper presents the receipt of a sale at a lane of an agent that reads no tags. */
  async release(node: AgentNode, report: TrackedReport): Promise<void> {
    const receipt = this.#receipts.get(report)
    const { agent } = node
    const lane = agent?.trust.policy?.devices.find(
      ({ agentId, deviceType }) => agentId === agent.identity.agentId && deviceType === 'pos_deactivator',
    )
    if (receipt === undefined || !lane) return
    const isReleased = await this.#ask(node, { deviceId: lane.deviceId, action: 'deactivate_label', receipt })
    if (isReleased) this.#parts.core.trace.add(node.name, `releases a label for the receipt of ${report.sale}`)
  }

  /** A shopper presents a receipt at the barrier of an agent. Undefined: no answer came. */
  #open(node: AgentNode, receipt: string): Promise<boolean | undefined> {
    const { agents, equipment } = this.#parts
    const deviceId = equipment.gates[agents.indexOf(node)] ?? ''
    return this.#ask(node, { deviceId, action: 'authorize_exit', receipt })
  }

  /** True if the agent authorizes the request and its device does not fail. Undefined: no answer came. */
  async #ask(
    { agent, machine: { process } }: AgentNode,
    request: { deviceId: string; action: 'authorize_exit' | 'deactivate_label'; receipt: string },
  ): Promise<boolean | undefined> {
    if (!agent || !process?.isAlive) return undefined
    return new Promise((resolve) => {
      const forget = process.onEnd(() => resolve(undefined))
      const end = (isOpen: boolean | undefined) => {
        forget()
        resolve(isOpen)
      }
      agent.lanes.request({ ...request, identifiers: {} }).then(
        // A barrier that did not move keeps the right for another try.
        ({ authorized, outcome }) => end(authorized && outcome !== 'failed'),
        () => end(undefined),
      )
    })
  }

  #judge({ name }: AgentNode, epc: string, expected: 'silent' | 'alarm', { reason, severity }: Assessed): void {
    const { core, oracle } = this.#parts
    oracle.judged[expected]++
    core.trace.add(name, `the gate must be ${expected} for ${epc.slice(-6)}: ${severity}, ${reason}`)
    if (expected === 'silent' && severity !== 'pass')
      core.violate('silence', `the gate of ${name} alarms for ${epc}, which a till sold: ${reason}`)
    // A receipt or release of another shopper may cover goods with the same facts.
    const isCovered = reason === 'receipt' || reason === 'released'
    if (expected === 'alarm' && severity === 'pass' && !isCovered)
      core.violate('alarms', `${epc} passes the gate of ${name} silently: ${reason}`)
  }
}
