import type { PcscPackage } from '../link-settings.ts'
import { nfcPcscCards } from './nfc-pcsc.ts'
import type { NfcPcsc } from './nfc-pcsc.ts'
import { pcscMiniCards } from './pcsc-mini.ts'
import type { PcscMini } from './pcsc-mini.ts'
import type { SmartCards } from './smart-cards.ts'

/** Loads a package by its name; throws if it is not installed or does not fit this system. */
export type LoadPackage = (name: PcscPackage) => unknown

const MAX_REASON_CHARS = 300

/** Reason why a package could not be loaded, such as `not installed`. */
function loadFailure(error: unknown, name: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'MODULE_NOT_FOUND' && message.includes(`'${name}'`)) return 'not installed'
  return (message.split('\n')[0] ?? '').replace(/:$/, '').slice(0, MAX_REASON_CHARS)
}

const OPEN: Readonly<Record<PcscPackage, (loaded: unknown) => SmartCards>> = {
  'pcsc-mini': (loaded) => pcscMiniCards(loaded as PcscMini),
  'nfc-pcsc': (loaded) => nfcPcscCards(loaded as NfcPcsc),
}

/** Opens the first package that loads. Throws an error with all reasons and the fix. */
export function openSmartCards(names: readonly PcscPackage[], load: LoadPackage): SmartCards {
  const reasons: string[] = []
  for (const name of names) {
    let loaded: unknown
    try {
      loaded = load(name)
    } catch (error) {
      reasons.push(`${name}: ${loadFailure(error, name)}`)
      continue
    }
    try {
      return OPEN[name](loaded)
    } catch (error) {
      throw new Error(`${name}: the smart-card service does not run (${(error as Error).message})`, { cause: error })
    }
  }
  // pcsc-mini's error names the package with the binary for this system.
  const binary = /@pcsc-mini\/[\w-]+/.exec(reasons.join(' '))?.[0]
  throw new Error(
    `no package for smart cards can be loaded (${reasons.join('; ')}); run npm install --no-save -O ${binary ?? names[0]}, see docs/reference/hardware/pcsc.md`,
  )
}
