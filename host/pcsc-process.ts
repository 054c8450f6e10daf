import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { listReaders, type ListedReader } from '../device-drivers/pcsc/list-readers.ts'
import type { ByteLink } from '../device-drivers/transports/byte-link.ts'
import { openLink, usesNfcPcsc } from '../device-drivers/transports/link-settings.ts'
import type { PcscLink } from '../device-drivers/transports/link-settings.ts'
import { openPcscChild } from '../device-drivers/transports/pcsc-library/child-link.ts'
import type { Platform } from '../policy/platform.ts'

const SCRIPT = fileURLToPath(new URL('./pcsc-child.js', import.meta.url))

/**
 * Opens a link to PC/SC: the socket of pcscd, or a child process with the package `nfc-pcsc`. On Linux the package also
 * uses this socket.
 */
export function openPcsc(link: PcscLink, signal: AbortSignal): Promise<ByteLink> {
  if (!usesNfcPcsc(link)) return openLink(link, signal)
  const env = { ...process.env, ...(link.socket !== undefined && { PCSCLITE_CSOCK_NAME: link.socket }) }
  return openPcscChild(() => spawn(process.execPath, [SCRIPT], { env, stdio: 'pipe', windowsHide: true }), signal)
}

/** Lists the NFC readers of this machine. */
export function listNfcReaders(socket: string, platform: Platform): Promise<ListedReader[]> {
  return listReaders((signal) => openPcsc({ pcsc: 'any', socket }, signal), platform)
}
