import { createRequire } from 'node:module'

// Types of the part of llrpjs that this file uses. The only types in llrpjs are its source files, which do not compile
// with the strict settings of untag.
interface Report {
  readonly TagReportData: { readonly EPC_96: { readonly EPC: string } }
}
interface Message {
  decode(): { toLLRPData(): { readonly data: Report } }
}
const { LLRPMessage } = createRequire(import.meta.url)('llrpjs') as { LLRPMessage: new (bytes: Buffer) => Message }

/** Decodes a report of one tag with llrpjs and returns the EPC. `bytes` is the whole message. */
export function llrpjsDecode(bytes: Uint8Array): string {
  const { data } = new LLRPMessage(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).decode().toLLRPData()
  return data.TagReportData.EPC_96.EPC
}
