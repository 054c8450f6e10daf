import { BrokerClaims, brokerVersion, type BrokerAccess } from '../../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Trust } from '../../trust/trust.ts'
import type { ReportRefusal } from './refusals.ts'

export interface BrokerAddressParts {
  identity: Pick<Identity, 'agentId' | 'mqttUrl'>
  trust: Pick<Trust, 'keys'>
  /** URL of the broker from the configuration. It replaces the one in the document. */
  mqttUrl: string | undefined
  onRefused: ReportRefusal
  /** Called when the address or the credentials changed. */
  onChange(): void
}

/**
 * Where and how the agent logs in to the broker. The cloud signs it for this agent and sends it with polls. Each start
 * begins with the URL from the enrolment and fetches the document before it connects.
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
   * Accepts a document from the HTTP API. Does not check its time, because the agent's clock may be wrong: an old
   * document leads to a former broker, and the next poll brings the new one.
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
