import {
  hasRole,
  ROLES,
  type AgentCaller,
  type Caller,
  type KeyCaller,
  type UserCaller,
} from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Operation } from '../../platform/operations/operation.ts'

/** A caller that has proved who it is. */
export type AuthenticatedCaller = KeyCaller | UserCaller | AgentCaller

const CREDENTIALS = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an administrator key',
  agent: 'an agent’s login',
  anyone: 'no key',
} satisfies Record<Operation['callers'][number], string>

/** True if the operation accepts this kind of caller, or the role of this user. */
function mayCall(caller: AuthenticatedCaller, operation: Pick<Operation, 'callers' | 'roles'>): boolean {
  return caller.kind === 'user' ? hasRole(caller, operation.roles) : operation.callers.includes(caller.kind)
}

/** Returns the caller to pass to the operation. Throws 403 if this caller may not call the operation. */
export function pickCaller(caller: AuthenticatedCaller | undefined, operation: Operation, address: string): Caller {
  if (caller && mayCall(caller, operation)) return caller.kind === 'publishable' ? { ...caller, address } : caller
  if (operation.callers.includes('anyone') || !caller) return { kind: 'anyone', address }
  if (caller.kind === 'user') throw roleTooLow(operation, caller)
  const reason = `${caller.kind}_not_allowed`
  const accepted = operation.callers.map((kind) => CREDENTIALS[kind]).join(' or ') || 'a signed-in user'
  throw new Failure('permission-denied', `${operation.name} needs ${accepted}; you sent ${CREDENTIALS[caller.kind]}`, {
    reason,
  })
}

function roleTooLow({ name, roles }: Operation, { role }: UserCaller): Failure {
  if (roles.includes(role))
    return new Failure('permission-denied', `${name} needs a second factor: add one, or sign in with it`, {
      reason: 'second_factor_needed',
    })
  const lowest = ROLES.findLast((each) => roles.includes(each))
  return lowest === undefined
    ? new Failure('permission-denied', `${name} cannot be called by users`, { reason: 'user_not_allowed' })
    : new Failure('permission-denied', `${name} needs the role ${lowest} or higher; your role is ${role}`, {
        reason: 'role_too_low',
      })
}
