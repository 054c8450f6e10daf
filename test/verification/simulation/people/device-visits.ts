import type { AuthorizeRequest } from '../../../../edge-agent/decisions/request.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import { releaseRequester, type RequestRelease, type HiddenState } from './request-release.ts'
import { requestToken, type DeviceRequest } from './request-token.ts'
import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Pace } from '../virtual/pace.ts'
import type { RulesOracle } from '../oracles/rules-oracle.ts'

/** Visits of customers to devices after the payment. */
export interface DeviceVisits {
  /** Requests a release from an agent. If the agent is down or dies meanwhile, resolves to undefined. */
  ask: RequestRelease
  atStation(bought: OwnedPurchase): Promise<void>
  withToken(bought: OwnedPurchase): Promise<void>
  byItem(bought: OwnedPurchase): Promise<void>
  atBothAgents(bought: OwnedPurchase): Promise<void>
  withoutAgent(bought: OwnedPurchase): Promise<void>
  atGate(bought: OwnedPurchase): Promise<void>
  linger(chance: Chance): Promise<void>
  /** Event ids in answers of agents. The cloud must receive all of these events. */
  readonly reportedEvents: Set<string>
  /** Events of tokens that a restored cloud lost. These events may be missing in the cloud. */
  readonly lostEvents: Set<string>
}

export interface OwnedPurchase {
  name: string
  purchaseId: string
  receipt: string
  ean: string
  epcs: string[]
  units: number
  chance: Chance
}

export interface DeviceVisitsParts {
  core: Core
  shop: Shop
  merchant: Merchant
  agents: readonly AgentNode[]
  pace: Pace
  hidden: HiddenState
  rules: Pick<RulesOracle, 'answered' | 'statusesAt'>
  /** True if customers come back later and show the same receipt again. */
  repeatsRequests: boolean
}

/** Creates the visits. */
export function deviceVisits(parts: DeviceVisitsParts): DeviceVisits {
  return new SimulatedDeviceVisits(parts)
}

class SimulatedDeviceVisits implements DeviceVisits {
  readonly #core: DeviceVisitsParts['core']
  readonly #shop: DeviceVisitsParts['shop']
  readonly #merchant: DeviceVisitsParts['merchant']
  readonly #agents: DeviceVisitsParts['agents']
  readonly #pace: DeviceVisitsParts['pace']
  readonly #isTrying: DeviceVisitsParts['repeatsRequests']
  readonly reportedEvents = new Set<string>()
  readonly lostEvents = new Set<string>()
  readonly ask: RequestRelease

  constructor({ core, shop, merchant, agents, pace, hidden, rules, repeatsRequests }: DeviceVisitsParts) {
    this.#core = core
    this.#shop = shop
    this.#merchant = merchant
    this.#agents = agents
    this.#pace = pace
    this.#isTrying = repeatsRequests
    this.ask = releaseRequester(
      this.#core,
      (eventId) => void (this.lostEvents.has(eventId) || this.reportedEvents.add(eventId)),
      hidden,
      rules,
    )
  }

  readonly linger = (chance: Chance): Promise<void> =>
    this.#core.scheduler.pause(
      chance.between(1, chance.happens(0.1) ? this.#pace.longestPauseMs * 10 : this.#pace.longestPauseMs),
    )

  readonly atStation = async ({ receipt, chance }: OwnedPurchase): Promise<void> => {
    const request: AuthorizeRequest = {
      deviceId: this.#shop.devices.station,
      action: 'deactivate_label',
      receipt,
      identifiers: {},
    }
    // The page and the scanner may send the same request at once, and customers may repeat the request.
    const times = chance.between(1, 3)
    for (let n = 0; n < times; n++) {
      const both = chance.happens(0.3) ? [request, request] : [request]
      await Promise.all(both.map((r) => this.#requestWithStaff(this.#agents[0], r, chance)))
      await this.linger(chance)
    }
  }

  readonly withToken = async ({ purchaseId, receipt, epcs: tags, chance }: OwnedPurchase): Promise<void> => {
    const tag = chance.happens(0.7) || tags.length === 0 ? undefined : chance.one(tags)
    // A returning customer requests a second token.
    const rounds = this.#isTrying && chance.happens(0.5) ? 2 : 1
    for (let round = 0; round < rounds; round++) {
      const shown = await requestToken(
        { shop: this.#shop, merchant: this.#merchant, agents: this.#agents },
        purchaseId,
        tag,
      )
      if (typeof shown === 'string') return
      // Some customers show the token shortly before or after it expires.
      if (this.#pace.name === 'slow' && chance.happens(0.3))
        await this.#core.scheduler.pause(chance.between(280_000, 400_000))
      // The customer may show the token, the receipt or both.
      const byReceipt: DeviceRequest = { node: shown.node, request: { ...shown.request, token: undefined, receipt } }
      const both = chance.happens(0.5) ? [shown] : chance.happens(0.5) ? [shown, byReceipt] : [byReceipt, shown]
      for (const each of both) await this.#requestRepeatedly(each, chance)
    }
  }

  readonly byItem = async ({ epcs: tags, receipt, chance }: OwnedPurchase): Promise<void> => {
    for (const epc of tags) {
      const request: AuthorizeRequest = {
        deviceId: this.#shop.devices.detacher,
        action: 'detach_hard_tag',
        identifiers: { epc },
        ...(chance.happens(0.7) && { receipt }),
      }
      await this.#requestWithStaff(this.#agents[1], request, chance)
      if (chance.happens(0.3)) await this.ask(this.#agents[1], request)
      await this.linger(chance)
    }
  }

  /** Shows one receipt at both agents, more often than it has units. */
  readonly atBothAgents = async ({ receipt, epcs: tags, units, chance }: OwnedPurchase): Promise<void> => {
    for (let n = 0; n < units * 2; n++) {
      if (n > 0) await this.linger(chance)
      const tag = tags[n % units]
      const atStation = chance.happens(0.5) || tag === undefined
      const request: AuthorizeRequest = atStation
        ? { deviceId: this.#shop.devices.station, action: 'deactivate_label', receipt, identifiers: {} }
        : { deviceId: this.#shop.devices.detacher, action: 'detach_hard_tag', receipt, identifiers: { epc: tag } }
      await this.#requestWithStaff(this.#agents[atStation ? 0 : 1], request, chance)
      // Some customers wait before they try again.
      if (chance.happens(0.5)) await this.#core.scheduler.pause(chance.between(1_000, 8_000))
    }
  }

  /** Redeems the token at the cloud, because the device has no agent. */
  readonly withoutAgent = async ({ name, purchaseId, chance }: OwnedPurchase): Promise<void> => {
    const deviceId = this.#shop.devices.alone
    const verified = await this.#merchant.call('verifySecurityTagDeactivation', { purchaseId, deviceId }, { tries: 4 })
    const token = verified?.ok ? verified.body['authorizationToken'] : undefined
    if (typeof token !== 'string') return
    const times = chance.between(1, 4)
    for (let n = 0; n < times; n++) {
      const redemptionId = `red-${name}-${n}`
      const redeemed = await this.#merchant.call(
        'redeemProtectionAuthorization',
        { authorizationToken: token, deviceId, redemptionId },
        { tries: 6 },
      )
      if (!redeemed?.ok) return
      await this.linger(chance)
      await this.#merchant.call(
        'redeemProtectionAuthorization',
        {
          authorizationToken: token,
          deviceId,
          redemptionId,
          outcome: chance.one(['confirmed', 'confirmed', 'failed', 'unknown']),
        },
        { tries: 6 },
      )
    }
  }

  async atGate({ receipt, epcs: tags, chance }: OwnedPurchase): Promise<void> {
    const request: AuthorizeRequest = {
      deviceId: this.#shop.devices.gate,
      action: 'authorize_exit',
      receipt,
      identifiers: {},
    }
    const times = chance.between(1, 2)
    for (let n = 0; n < times; n++) {
      await this.#requestWithStaff(this.#agents[0], request, chance)
      await this.linger(chance)
    }
    for (const epc of tags)
      if (chance.happens(0.5)) await this.ask(this.#agents[0], { ...request, identifiers: { epc } })
    // A program at the gate may send only the tag's EPC, without the receipt.
    const [tag] = tags
    if (tag !== undefined && chance.fork('by-name').happens(0.3))
      await this.ask(this.#agents[0], { ...request, receipt: undefined, identifiers: { epc: tag } })
  }

  /** Sends the request. If the request needs staff, an operator approves it in most cases. */
  async #requestWithStaff(node: AgentNode | undefined, request: AuthorizeRequest, chance: Chance): Promise<void> {
    const answer = await this.ask(node, request)
    if (answer?.reason !== 'manual_assistance_required' || chance.happens(0.4)) return
    await this.linger(chance)
    await this.ask(node, { ...request, operatorId: this.#shop.operatorId })
  }

  async #requestRepeatedly({ node, request }: DeviceRequest, chance: Chance): Promise<void> {
    const times = chance.between(1, 4)
    for (let n = 0; n < times; n++) {
      const both = chance.happens(0.3) ? [request, request] : [request]
      await Promise.all(both.map((r) => this.#requestWithStaff(node, r, chance)))
      await this.linger(chance)
      if (this.#isTrying && chance.happens(0.5)) await this.#core.scheduler.pause(chance.between(1_000, 15_000))
    }
  }
}
