import { printLine as say, printReady } from '../../host/output.ts'
import {
  icode,
  ndefRecord,
  ndefTlv,
  ntag,
  plainTag,
  storageAtr,
  type IcodeTag,
  type NfcTag,
} from '../../simulators/devices/nfc-tags.ts'
import { PcscdSimulator } from '../../simulators/devices/pcsc.ts'
import { serveSocket } from '../../simulators/devices/serve.ts'
import type { Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { SIMULATE_NFC_OPTIONS } from '../../host/settings/tools.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { runStdinCommands } from './edge-access.ts'

const READER = 'Untag simulated NFC reader 00 00'
const HTTPS = 4
const MIFARE_CLASSIC = storageAtr(0x03, 0x0001)

function ndef(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined
  const bytes = (of: string) => new TextEncoder().encode(of)
  const record = text.startsWith('https://')
    ? ndefRecord('U', Uint8Array.of(HTTPS, ...bytes(text.slice(8))))
    : ndefRecord('T', Uint8Array.of(2, ...bytes(`en${text}`)))
  return ndefTlv(record)
}

/** Creates a tag; its type follows from the UID. Null for an invalid UID. */
function tagOf(uid: string, text: string | undefined): NfcTag | IcodeTag | null {
  const data = ndef(text)
  if (/^E0[0-9A-F]{14}$/.test(uid)) return icode(uid, { transparent: true, ...(data ? { data } : {}) })
  if (/^[0-9A-F]{14}$/.test(uid)) return ntag(uid, data ?? ndefTlv(new Uint8Array(0)))
  return /^[0-9A-F]{8}$/.test(uid) ? plainTag(MIFARE_CLASSIC, uid) : null
}

/**
 * Simulates pcscd with one reader. Commands on stdin: `put UID [URL or text]`, `take`, `show` (prints the EAS bit),
 * `unplug`, `plug`. A UID of 8 hex digits is a MIFARE Classic, and a UID of 14 is an NTAG. A UID of 16 hex digits that
 * starts with E0 is an ICODE SLIX with its EAS bit set.
 */
export async function runSimulateNfc({ socket }: Values<typeof SIMULATE_NFC_OPTIONS>): Promise<void> {
  const pcscd = new PcscdSimulator({ platform: realPlatform() })
  let isPlugged = false
  let tagOnReader: NfcTag | IcodeTag | null = null
  const plug = (on: boolean) => {
    if (isPlugged === on) return
    isPlugged = on
    tagOnReader = null
    if (on) pcscd.plug(READER)
    else pcscd.unplug(READER)
  }
  plug(true)
  const service = await serveSocket(socket, pcscd.serve)
  const stopOrders = runStdinCommands({
    put(uid = '', text) {
      const tag = tagOf(uid.toUpperCase(), text)
      if (!tag) return say('a UID is 8, 14 or (beginning with E0) 16 hex digits')
      plug(true)
      tagOnReader = tag
      pcscd.put(READER, tag)
    },
    take() {
      tagOnReader = null
      if (isPlugged) pcscd.take(READER)
    },
    show: () =>
      say(
        tagOnReader === null ? 'no tag' : 'eas' in tagOnReader ? `eas ${tagOnReader.eas ? 'on' : 'off'}` : 'no EAS bit',
      ),
    unplug: () => plug(false),
    plug: () => plug(true),
  })
  stopOnSignals(async () => {
    stopOrders()
    await service.close()
  })
  printReady({ socket, reader: READER })
}
