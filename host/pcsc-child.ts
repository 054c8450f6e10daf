import { createRequire } from 'node:module'
import type { ByteLink } from '../device-drivers/transports/byte-link.ts'
import { READY } from '../device-drivers/transports/pcsc-library/child-link.ts'
import { serveSmartCards } from '../device-drivers/transports/pcsc-library/serve.ts'
import { openSmartCards, type SmartCards } from '../device-drivers/transports/pcsc-library/smart-cards.ts'

/*
 *     agent ──stdin: requests of pcscd's protocol──▶ pcsc-child ──▶ nfc-pcsc ──▶ PC/SC of the system
 *           ◀──stdout: responses──      stderr: "ready", or the error
 *
 * The agent starts this process and kills it if it does not respond.
 */

/** Wait for the first readers, ms. The package reports readers one by one and does not report the end of the list. */
const SETTLE_MS = 300

const stdio: ByteLink = {
  bytes: process.stdin,
  write: (bytes) =>
    new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()))
    }),
  close: () => {
    process.stdin.destroy()
    return Promise.resolve()
  },
}

const say = (line: string) => new Promise<unknown>((resolve) => process.stderr.write(`${line}\n`, resolve))

/** Serves the agent until the agent closes stdin. Returns an error text, or null. */
async function serve(): Promise<string | null> {
  let cards: SmartCards
  try {
    cards = openSmartCards(() => createRequire(import.meta.url)('nfc-pcsc'))
  } catch (error) {
    return (error as Error).message
  }
  setTimeout(() => void say(READY), SETTLE_MS)
  return Promise.race([cards.ended, serveSmartCards(cards, stdio).then(() => null)])
}

const wrong = await serve()
if (wrong !== null) await say(wrong)
process.exit(wrong === null ? 0 : 1)
