import { enrolmentCodeHash } from '../../../../policy/documents/agent-messages.ts'
import { publicJwk, createSigner } from '../../../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import { messageSigner, type MessageSigner } from '../../../../edge-agent/link/login/sign-messages.ts'
import { ORIGIN, API } from './served-cloud.ts'

/** Identity of an enrolled agent. */
export interface AgentIdentity {
  readonly agentId: string
  readonly storeId: string
  readonly ledgerId: string
  readonly x: string
  /** Private key, base64url. */
  readonly secret: string
}

type OwnKey = Pick<AgentIdentity, 'ledgerId' | 'x' | 'secret'>

const signerOf = ({ x, secret }: OwnKey) => createSigner(x, Buffer.from(secret, 'base64url'))

/** Proof for `enrolEdgeAgent` that the new agent has its private key. */
export function enrolmentProof(own: OwnKey, code: string, nowMs: number): string {
  const iat = Math.floor(nowMs / 1_000)
  const claims = {
    aud: `${ORIGIN}${API}`,
    iat,
    exp: iat + 300,
    codeHash: enrolmentCodeHash(code),
    ledger: own.ledgerId,
  }
  return signDocument(DOCUMENT_KINDS.enrolment, claims, signerOf(own))
}

/** Public key as a JWK. */
export function publicKeyOf({ x }: Pick<OwnKey, 'x'>): Record<string, unknown> {
  return { ...publicJwk(x) }
}

/** Creates the signer of the agent's messages to the cloud. */
export function messagesOfAgent(own: AgentIdentity): MessageSigner {
  return messageSigner({
    ...own,
    tenant: '',
    generation: 1,
    cloud: `${ORIGIN}${API}`,
    mqttUrl: '',
    rootX: '',
  })
}
