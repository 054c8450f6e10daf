import type { AgentConfig } from '../../../edge-agent/config.ts'
import type { Identity } from '../../../edge-agent/identity/identity.ts'
import type { EndParts } from './end-checks.ts'
import { actuators, type Actuators } from './nodes/actuators.ts'
import { agentNode, type AgentNode } from './nodes/agent-node.ts'
import { cloudNode, type CloudNode } from './nodes/cloud-node.ts'
import { emergencies, type Emergencies } from './nodes/emergencies.ts'
import type { Shop } from './nodes/initial-shop.ts'
import { merchant, type Merchant } from './nodes/merchant.ts'
import { provider, type Provider } from './nodes/provider.ts'
import { receiver, type Receiver } from './nodes/receiver.ts'
import { Restarts } from './nodes/restarts.ts'
import { answerOracle, type AnswerOracle } from './oracles/answer-oracle.ts'
import { cloudOracle, type CloudOracle } from './oracles/cloud-oracle.ts'
import { delegationOracle, type DelegationOracle } from './oracles/delegation-oracle.ts'
import { receiptHomeOracle, receiptEnd, type ReceiptHomeOracle } from './oracles/receipt-home-oracle.ts'
import { ledgerOracle, type LedgerOracle } from './oracles/ledger-oracle.ts'
import { lossOracle, type LossOracle } from './oracles/loss-oracle.ts'
import { moneyOracle, type MoneyOracle } from './oracles/money-oracle.ts'
import { rulesOracle } from './oracles/rules-oracle.ts'
import { customers, type Customers } from './people/customers.ts'
import { livePayment, testPayment } from './people/payment.ts'
import { tills, type Tills } from './people/tills.ts'
import { withTillGate, type TillEquipment } from './nodes/till-equipment.ts'
import type { Plan } from './plan.ts'
import { backups, type Backups, type BackupsParts } from './faults/backups.ts'
import { agentCopies, type AgentCopies } from './faults/agent-copies.ts'
import { deviceMoves, type DeviceMoves } from './faults/device-moves.ts'
import { reEnrolments, type ReEnrolments } from './faults/re-enrolments.ts'
import type { Fault } from './faults/fault-kinds.ts'
import { newLyingAgent, type LyingAgent } from './faults/lying-agent.ts'
import type { FaultTargets } from './faults/fault-targets.ts'
import type { Core } from './virtual/core.ts'
import { newLan, type Lan } from './virtual/lan.ts'
import { newWire, type Wire } from './virtual/wire.ts'

/** Factor for the probability of a crash at a device command, where a crash does the most harm. */
const DEVICE_MOVE_WEIGHT = 10
/** With these faults, customers repeat requests at both agents. */
const FAULTS_WITH_REPEATED_REQUESTS: ReadonlySet<Fault> = new Set<Fault>([
  'home',
  'restore',
  'rollback',
  'enrol',
  'copy',
  'moves',
])

interface Installation {
  name: string
  identity: Identity
  /** Configuration at each start. */
  config(): AgentConfig
  /** Folder with the initial files. */
  template: string
  /** False after the machine was removed. */
  isThere(): boolean
}

/**
 * Connects the machines, people and oracles of one run. Starts no process.
 *
 * Customers call the cloud over the shop wire and visit the devices of the agents. Each agent has its own wire to the
 * cloud. The cloud calls the webhook receiver and the payment provider. After each commit, the oracles check the
 * database or ledger.
 */
export class Simulation implements FaultTargets, EndParts, BackupsParts {
  readonly core: Core
  readonly plan: Plan
  readonly shop: Shop
  readonly restarts: Restarts
  readonly backups: Backups
  readonly provider: Provider | undefined
  readonly money: MoneyOracle | undefined
  readonly cloudOracle: CloudOracle
  readonly answers: AnswerOracle
  readonly receiver: Receiver
  readonly cloud: CloudNode
  readonly emergencies: Emergencies | undefined
  readonly actuators: Actuators
  readonly lan: Lan
  readonly homes: ReceiptHomeOracle
  readonly agents: AgentNode[] = []
  readonly ledgers = new Map<string, LedgerOracle>()
  readonly shopWire: Wire
  readonly manager: Merchant
  readonly moves: DeviceMoves | undefined
  readonly liar: LyingAgent | undefined
  readonly enrolments: ReEnrolments
  readonly copies: AgentCopies
  readonly people: Customers
  /** Undefined without the fault `tills`. */
  readonly tills: Tills | undefined
  readonly #delegations: DelegationOracle
  readonly #losses: LossOracle

  constructor(core: Core, shop: Shop, plan: Plan) {
    this.core = core
    this.shop = shop
    this.plan = plan
    this.restarts = new Restarts(core)
    this.backups = backups(() => this)
    this.provider = plan.provider && provider(core, plan.provider, shop, () => this.cloud)
    this.money = this.provider && this.#newMoney(this.provider)
    const liarIdentity = this.#has('liar') ? shop.agents[2]?.identity : undefined
    this.#delegations = delegationOracle(core, liarIdentity?.agentId)
    this.cloudOracle = this.#newCloudWatch()
    this.answers = answerOracle(core)
    this.receiver = receiver(core, () => this.restarts.disturbances)
    this.cloud = this.#newCloud()
    this.emergencies = this.#has('emergency') ? emergencies(core, shop.devices) : undefined
    this.actuators = this.#newActuators()
    this.lan = newLan(core)
    this.homes = receiptHomeOracle(core, this.ledgers, (cti) => receiptEnd(this.cloud.disk.reading, cti))
    const isSure = !this.#has('restore', 'rollback', 'enrol', 'copy', 'moves', 'keys')
    this.#losses = lossOracle({ core, ledgers: this.ledgers, reading: () => this.cloud.disk.reading, isSure })
    this.shopWire = newWire('shop', core)
    this.tills = shop.tills && this.#newTills(shop.tills)
    for (let n = 0; n < plan.agents; n++) this.agents.push(this.#installOfShop(n))
    this.manager = this.#newProgram('manager', shop.key)
    this.moves = this.#has('moves') ? deviceMoves(this) : undefined
    this.liar = liarIdentity && this.#newLiar(liarIdentity)
    this.enrolments = reEnrolments(this)
    this.copies = this.#newCopies()
    this.people = this.#newCustomers()
  }

  get isClockWrong(): boolean {
    return this.#has('cloud-clock')
  }

  /** Starts the cloud if it is down. */
  startCloud(): void {
    void this.restarts.start('the cloud', this.cloud)
  }

  /** Ends every process and closes the disks. */
  close(): void {
    for (const node of [this.cloud, ...this.agents, ...this.copies.nodes]) {
      node.machine.process?.kill()
      node.disk.close()
    }
  }

  #has(...kinds: Fault[]): boolean {
    return kinds.some((kind) => this.plan.faults.includes(kind))
  }

  #newProgram(name: string, apiKey: string): Merchant {
    return merchant({ core: this.core, server: this.cloud, wire: this.shopWire, name, apiKey })
  }

  #newMoney(provided: Provider): MoneyOracle {
    return moneyOracle(this.core, provided, {
      isEveryAgentHere: this.plan.agents === this.shop.agents.length,
      isClockSure: !this.#has('agent-clock', 'cloud-clock', 'rollback'),
    })
  }

  #newCloudWatch(): CloudOracle {
    return cloudOracle(this.core, {
      onGrant: (db, nonce) => {
        this.backups.granted(db, nonce)
        this.#delegations.granted(db, nonce)
      },
      ...(this.money && { onPaid: this.money.paid }),
    })
  }

  #newCloud(): CloudNode {
    return cloudNode({
      core: this.core,
      keyFiles: this.shop.keyFiles,
      outgoing: {
        send: (request, signal) => {
          const isPayment = this.provider && request.url.startsWith(this.provider.books.baseUrl)
          return (isPayment ? this.provider : this.receiver).outgoing.send(request, signal)
        },
      },
      template: this.shop.templates.cloud,
      onCommit: (connection) => {
        this.cloudOracle.committed(connection)
        this.#delegations.committed(connection)
        this.liar?.cloudCommitted(connection)
      },
      // Counts the fault, because the cloud repeats work that the disk did not store.
      onDiskFault: () => this.restarts.countDisturbance(),
      onAnswer: this.answers.answered,
      onEnded: () => this.restarts.restartAfterEnd('cloud', () => this.startCloud()),
    })
  }

  #newActuators(): Actuators {
    return actuators({
      ...this.core,
      ...(this.emergencies && { emergencies: this.emergencies }),
      onRelease: (name, deviceId) => {
        this.ledgers.get(name)?.released(deviceId)
        for (const node of [...this.agents, ...this.copies.nodes])
          if (node.name === name) node.maybeDie('as a device moves', DEVICE_MOVE_WEIGHT)
      },
    })
  }

  #installOfShop(n: number): AgentNode {
    const { identity, config } = this.#agentOfShop(n)
    const name = `agent-${n + 1}`
    return this.#install({
      name,
      identity,
      config: () => {
        const own = this.moves ? this.moves.configOf({ name }) : config
        const gate = this.shop.tills?.gates[n]
        if (gate !== undefined) return withTillGate(own, name, gate)
        return this.emergencies ? this.emergencies.configOf(own) : own
      },
      template: this.shop.templates.agents[n] ?? '',
      isThere: () => true,
    })
  }

  #agentOfShop(n: number): Shop['agents'][number] {
    const found = this.shop.agents[n]
    if (!found) throw new Error(`the shop has no agent ${n + 1}`)
    return found
  }

  /** Creates a machine with an agent and its oracles. */
  #install({ name, identity, config, template, isThere }: Installation): AgentNode {
    const { core, cloud, lan } = this
    const ledger = this.#newLedger(name, () => node.hasRecentCloudTime)
    this.ledgers.set(name, ledger)
    const start = () => {
      if (isThere()) void this.restarts.start(name, node)
    }
    const node = agentNode({
      core,
      name,
      identity,
      config,
      template,
      cloud,
      wire: newWire(name, core),
      lan,
      actuators: this.tills ?? this.actuators,
      onCommit: (connection) => {
        ledger.committed(connection)
        this.homes.committed(node, connection)
        this.#losses.committed(node)
        this.liar?.agentCommitted(node, connection)
      },
      onStart: ledger.processEnded,
      onEnded: () => this.restarts.restartAfterEnd(name, start),
      onReplaced: ledger.reEnrolled,
      onTillNotice: (how, body) =>
        how === 'sent' ? this.tills?.book.noticeSent(name, body) : this.tills?.book.noticeAcknowledged(name, body),
    })
    return node
  }

  #newLedger(name: string, wasInTouch: () => boolean): LedgerOracle {
    return ledgerOracle(name, this.core, {
      ...this.cloudOracle,
      lostWith: this.backups.lostWith,
      onRow: ({ body: { evidence } }) => {
        if (this.money && evidence && this.cloud.disk.reading) this.money.used(this.cloud.disk.reading, evidence)
      },
      isClockSure: () => !this.isClockWrong && wasInTouch(),
    })
  }

  #newLiar(identity: Identity): LyingAgent {
    const { core, cloud, manager, agents, lan } = this
    const { storedHeads } = this.cloudOracle
    return newLyingAgent({
      core,
      cloud,
      manager,
      identity,
      agents,
      lan,
      storedHeads,
      pauseMs: this.plan.pace.longestPauseMs,
    })
  }

  #newCopies(): AgentCopies {
    const { core, cloud, manager, ledgers } = this
    return agentCopies({
      core,
      cloud,
      manager,
      enrolments: this.enrolments,
      ledgers,
      install: (original, name, template, isThere) => {
        const { config } = this.#agentOfShop(this.agents.indexOf(original))
        const { identity } = original
        const node = this.#install({ name, identity, config: () => config, template, isThere })
        ledgers.get(name)?.ledgerRestored(ledgers.get(original.name)?.rows.at(-1)?.seq ?? 0)
        this.restarts.restartAfterEnd(name, () => node.start())
        return node
      },
      onRemoved: this.homes.ledgerRestored,
    })
  }

  #newTills(equipment: TillEquipment): Tills {
    const { core, shop, lan, plan } = this
    return tills({
      core,
      shop,
      equipment,
      lan,
      agents: this.agents,
      count: plan.agents,
      merchant: this.#newProgram('till-server', shop.key),
      devices: this.actuators,
      pace: plan.pace,
      isClockSure: !this.#has('agent-clock', 'cloud-clock', 'rollback', 'keys'),
      isLanSure: !this.#has('lan', 'weather', 'half-open', 'agent-crash', 'restart', 'enrol', 'rollback', 'agent-disk'),
      showReceipt: (bought) => this.people.showReceipt(bought),
    })
  }

  #newCustomers(): Customers {
    const { core, shop, plan } = this
    const program = this.#newProgram('merchant', shop.key)
    return customers({
      rules: rulesOracle({ core, reading: () => this.cloud.disk.reading, isCalm: false }),
      core,
      shop,
      merchant: program,
      vouch: (purchaseId) => this.money?.confirmed(purchaseId),
      payment: this.provider ? livePayment(core, shop, program, this.provider) : testPayment(program),
      stranger: this.#newProgram('stranger', shop.foreignKey),
      agents: this.agents,
      pace: plan.pace,
      repeatsRequests: plan.faults.some((kind) => FAULTS_WITH_REPEATED_REQUESTS.has(kind)),
      hidden: {
        restores: () => this.backups.restores,
        holderOf: (deviceId) => this.moves?.holderOf(deviceId),
        nodeMet: this.copies.original,
      },
    })
  }
}
