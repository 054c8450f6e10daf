import { createRequire } from 'node:module'

// Its types are its sources, which do not compile as strictly as ours: so this is the part of them that is used.
interface Report {
  readonly TagReportData: { readonly EPC_96: { readonly EPC: string } }
}
interface Message {
  decode(): { toLLRPData(): { readonly data: Report } }
}
const { LLRPMessage } = createRequire(import.meta.url)('llrpjs') as { LLRPMessage: new (bytes: Buffer) => Message }

/** The EPC of a report of one tag, by llrpjs. `bytes` is the whole message. */
export function llrpjsDecode(bytes: Uint8Array): string {
  const { data } = new LLRPMessage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).decode().toLLRPData()
  return data.TagReportData.EPC_96.EPC
}
