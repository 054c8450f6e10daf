import type { Actuators } from '../nodes/actuators.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { gateReader, type GateReader } from '../nodes/gate-reader.ts'
import { readerOf, type TillEquipment, type TillGood } from '../nodes/till-equipment.ts'
import type { TillBook } from '../oracles/till-book.ts'
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
    const { core, agents, equipment, book, oracle } = this.#parts
    const node = where ?? chance.one(agents)
    const gate = equipment.gates[agents.indexOf(node)] ?? ''
    const { agent } = node
    if (!agent || this.#busy.has(gate)) return
    this.#busy.add(gate)
    const epcs = goods.map(({ epc }) => epc)
    const expectedOf = (epc: string) => (where ? 'alarm' : oracle.expected(node.name, epc))
    const known = epcs.filter((epc) => agent.items.find('epc', epc) !== undefined)
    const before = known.map((epc) => ({ epc, version: book.versionOf(epc), expected: expectedOf(epc) }))
    agent.gates.startWalk(gate, WALK_SECONDS)
    await this.#readers.get(node.name)?.carry(epcs, 'out')
    await core.scheduler.pause(ASSESSED_MS)
    this.#busy.delete(gate)
    if (!node.machine.isUp || node.agent !== agent) return
    const seen = agent.gates.walks.recording(gate)?.tags ?? []
    for (const { epc, version, expected } of before) {
      const left = seen.find((tag) => tag.epc === epc)?.left
      // Judges only if nothing was reported meanwhile.
      const isSame = version === book.versionOf(epc) && expected === expectedOf(epc)
      if (left && isSame && expected !== undefined) this.#judge(node, epc, expected, left)
    }
  }

  #judge(
    { name }: AgentNode,
    epc: string,
    expected: 'silent' | 'alarm',
    { reason, severity }: { reason: string; severity: string },
  ): void {
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
