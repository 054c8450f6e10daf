import type { CallerKind, Operation } from '../../platform/operations/operation.ts'

const CALLERS: Readonly<Record<CallerKind, string>> = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an admin key',
  agent: 'an agent’s login',
  anyone: 'no key',
}

/** Names of the kinds of callers and of the lowest role, as a phrase. */
export function callersInWords({ callers, roles }: Pick<Operation, 'callers' | 'roles'>): string {
  const lowest = roles.at(-1)
  const users = lowest === undefined ? [] : [lowest === 'viewer' ? 'any user' : `a user (${lowest} or higher)`]
  const words = [...callers.map((caller) => CALLERS[caller]), ...users]
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}
