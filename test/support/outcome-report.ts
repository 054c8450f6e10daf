import type { HomeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import type { Json } from './cloud.ts'
import type { Shop } from './shop.ts'
import type { TestAgent } from './test-agent.ts'

/** Signs an agent's outcome report about a right that a receipt home delegated to it. */
export function outcomeReport(
  by: TestAgent,
  about: Pick<HomeRequest, 'redemptionId' | 'cti' | 'homeEpoch' | 'outcome'> & Partial<HomeRequest>,
  signer: Signer = by.signer,
): string {
  const claims: HomeRequest = {
    aud: '',
    iat: 1_800_000_000,
    exp: 1_800_000_060,
    iss: by.agentId,
    jti: 'a'.repeat(22),
    rightClass: 'release',
    candidates: [0],
    all: false,
    receiptExp: 1_800_086_400,
    ...about,
  }
  return signDocument(DOCUMENT_KINDS.homeRequest, claims, signer)
}

/** Makes an agent the receipt home of the shop. Returns the new `homeEpoch`. */
export async function makeHome(shop: Shop, agent: Pick<TestAgent, 'agentId'>): Promise<number> {
  return (await shop.ok('moveReceiptHome', { storeId: shop.storeId, home: agent.agentId })).homeEpoch
}

/** Buys one tagged unit. Returns the purchase and the id of its receipt. */
export async function paidReceipt(shop: Shop): Promise<{ purchaseId: string; cti: string }> {
  const { transactionId: purchaseId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const row = await shop.cloud.db.database.reads
    .selectFrom('purchase')
    .select('cti')
    .where('purchase_id', '=', purchaseId)
    .executeTakeFirstOrThrow()
  return { purchaseId, cti: row.cti ?? '' }
}

/** Subjects of the exceptions of this kind. */
export async function exceptionSubjects(shop: Shop, kind: string): Promise<string[]> {
  const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kind, limit: 200 })
  return exceptions.map((each: Json) => each.subject)
}
