import type { CallerKind } from '../operations/operation.ts'

const CALLERS: Readonly<Record<CallerKind, string>> = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an admin key',
  agent: 'an agent’s login',
  anyone: 'no key',
}

/** Names of the kinds of callers, as a phrase. */
export function callersInWords(callers: readonly CallerKind[]): string {
  const words = callers.map((caller) => CALLERS[caller])
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}
