import { BrokerClaims, brokerVersion, type BrokerAccess } from '../../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Trust } from '../../trust/trust.ts'
import type { ReportRefusal } from './refusals.ts'

export interface BrokerAddressParts {
  identity: Pick<Identity, 'agentId' | 'mqttUrl'>
  trust: Pick<Trust, 'keys'>
  /** URL of the broker from the configuration. This URL replaces the URL in the cloud's document. */
  mqttUrl: string | undefined
  onRefused: ReportRefusal
  /** Called when the address or the credentials changed. */
  onChange(): void
}

/**
 * Where and how the agent logs in to the broker. For each agent, the cloud signs a document with this information and
 * sends the document with polls. After a start, the agent has only the URL from the enrolment. So the agent fetches the
 * document before it connects to the broker.
 */
export class BrokerAddress {
  readonly #parts: BrokerAddressParts
  #access: BrokerAccess
  #version = ''

  constructor(parts: BrokerAddressParts) {
    this.#parts = parts
    this.#access = { url: parts.mqttUrl ?? parts.identity.mqttUrl, username: parts.identity.agentId }
  }

  get access(): BrokerAccess {
    return this.#access
  }

  /** Version of the accepted document; empty before the first one. */
  get version(): string {
    return this.#version
  }

  /**
   * Accepts a document from the HTTP API. Does not check the time of the document, because the agent's clock may be
   * wrong. An old document leads to a former broker only until the next poll.
   */
  receive(document: string): void {
    const { identity, trust, mqttUrl, onRefused, onChange } = this.#parts
    const opened = openDocument<BrokerClaims>(document, DOCUMENT_KINDS.broker, {
      keys: trust.keys,
      audience: identity.agentId,
    })
    if (!opened.ok) return onRefused(`broker document: ${opened.fault} (${opened.detail})`)
    const claims = BrokerClaims.safeParse(opened.claims)
    if (!claims.success) return onRefused('broker document: claims_invalid')
    const { url, username, password, ca } = claims.data
    const access = { url, username, ...(password !== undefined && { password }), ...(ca !== undefined && { ca }) }
    const isNew = brokerVersion(access) !== this.#version
    this.#version = brokerVersion(access)
    this.#access = { ...access, url: mqttUrl ?? url }
    if (isNew) onChange()
  }
}
