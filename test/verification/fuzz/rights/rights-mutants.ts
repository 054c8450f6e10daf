import { change, type Change, type Mutant } from '../../simulation/mutants/mutant.ts'
import type { RightsRule } from './world.ts'

/** A mutant of the rights of callers. At least one of `rules` must find the mutant. */
export interface RightsMutant extends Mutant {
  readonly rules: readonly RightsRule[]
  readonly isAboutRights: true
}

const mutant = (name: string, what: string, rules: readonly RightsRule[], ...changes: Change[]): RightsMutant => ({
  name,
  what,
  rules,
  isAboutRights: true,
  changes,
})

/** One mutant or more of each kind of fault that attackers found. The fuzzer of rights must find all of them. */
export const RIGHTS_MUTANTS: readonly RightsMutant[] = [
  mutant(
    'right-checked-before-body',
    'The cloud does not check the rights again after the body has arrived.',
    ['ended-right'],
    change(
      'cloud/platform/operations/perform-steps.js',
      "if (caller.kind === 'anyone')",
      'if (caller.kind.length > 0)',
    ),
  ),
  mutant(
    'right-checked-before-steps',
    'An operation of several transactions checks the rights only at the start.',
    ['ended-right'],
    change('cloud/platform/operations/perform-steps.js', 'if (!isDone)', 'if (false)'),
  ),
  mutant(
    'pairing-checked-before-body',
    'The agent does not check the pairing again after the body has arrived.',
    ['ended-right'],
    change('edge-agent/http/local-app.js', 'return refuse(c) ?? next();', 'return next();'),
  ),
  mutant(
    'session-survives-update',
    'A change of role or stores does not end the sessions of the user.',
    ['no-right', 'ended-right', 'stream', 'two-step'],
    change(
      'cloud/platform/users/user-operations.js',
      'await endSessionsOf(call.db, userId);\n        call.changed(userId);',
      'call.changed(userId);',
    ),
  ),
  mutant(
    'live-without-factor',
    'Owners see live data without a second factor.',
    ['no-right', 'stream', 'foreign-data', 'ended-right'],
    change('cloud/platform/users/sessions.js', "(roleOf(user) !== 'owner' || hasSecondFactor)", 'true'),
  ),
  mutant(
    'platform-without-factor',
    'People who run the cloud act without a second factor.',
    ['no-right', 'foreign-data'],
    change('cloud/platform/foundation/caller.js', 'if (role === PLATFORM_ROLE && !hasSecondFactor)', 'if (false)'),
  ),
  mutant(
    'platform-operation-for-owners',
    'Owners may change the package of any store.',
    ['no-right'],
    change(
      'cloud/sales/store-operations/store-package.js',
      "name: 'setStorePackage',\n    area: 'stores',\n    minimumPackage: 'DISCOVER',\n    roles: [",
      "name: 'setStorePackage',\n    area: 'stores',\n    minimumPackage: 'DISCOVER',\n    roles: ['owner', ",
    ),
  ),
  mutant(
    'invitation-outlives-inviter',
    'An invitation stays valid after its inviter lost the right to grant it.',
    ['ended-right'],
    change(
      'cloud/platform/users/invitations.js',
      'return (inviter !== undefined &&',
      'return true || (inviter !== undefined &&',
    ),
  ),
  mutant(
    'begun-factor-survives',
    'The secret of an authenticator app stays valid after another change of credentials.',
    ['two-step'],
    change('cloud/platform/users/session-operations.js', '.set(NOTHING_BEGUN)', ".set({ state: 'active' })"),
  ),
  mutant(
    'begun-factor-of-any-age',
    'The secret of an authenticator app can be confirmed at any time.',
    ['two-step'],
    change('cloud/platform/users/session-operations.js', '(expiresMs ?? 0) > call.nowMs', '(expiresMs ?? 0) > 0'),
  ),
  mutant(
    'account-of-provider-not-asked',
    'A sign-in at the provider silently takes one of several accounts.',
    ['wrong-account'],
    change('cloud/platform/users/openid-operations.js', 'options.length > 1 &&', 'options.length > 9 &&'),
  ),
  mutant(
    'inviter-keeps-access',
    'The first sign-in at the provider leaves a password that the inviter may have chosen.',
    ['wrong-account', 'stream', 'ended-right'],
    change('cloud/platform/users/openid-operations.js', 'if (user.accepted_ms !== null)', 'if (false)'),
  ),
  mutant(
    'account-of-password-not-asked',
    'A sign-in with a password that fits several accounts takes one of them.',
    ['wrong-account'],
    change('cloud/platform/users/sign-in-operations.js', 'if (another)', 'if (false)'),
  ),
  mutant(
    'success-clears-guesses',
    'A sign-in clears the wrong guesses of all users.',
    ['guesses'],
    change(
      'cloud/platform/users/sign-in-operations.js',
      "const state = user.totp_secret === null ? 'active' : 'pending';",
      "await call.db.deleteFrom('sign_in_failure').execute();\n        const state = user.totp_secret === null ? 'active' : 'pending';",
    ),
  ),
  mutant(
    'guesses-at-once',
    'Guesses that are sent at once are all answered.',
    ['guesses'],
    change('cloud/platform/users/sign-in-operations.js', 'if (count > FAILURE_LIMITS[kind])', 'if (false)'),
  ),
  mutant(
    'form-of-first-store',
    'A form for a store that the user may not see acts on the first store.',
    ['no-right'],
    change('cloud/console/frame/context.js', "if (from === 'form')\n        throw", "if (from === 'x')\n        throw"),
  ),
  mutant(
    'stream-of-other-mode',
    'A session that may use sandbox data only listens to live changes.',
    ['stream'],
    change('cloud/console/frame/console.js', "if (mode === 'live' && !session.mayUseLive)", 'if (false)'),
  ),
  mutant(
    'stream-survives-session',
    'A stream of changes goes on after its session has ended.',
    ['stream'],
    change('cloud/console/frame/console.js', 'if (!(await mayListen().catch(() => false)))', 'if (false)'),
  ),
  mutant(
    'notices-survive-session',
    'A browser that a user subscribed gets notices after the session has ended.',
    ['push'],
    change('cloud/shop/push/register.js', "caller.kind === 'user' && kind === 'web' ?", 'false ?'),
  ),
  mutant(
    'network-without-share',
    'One network may fill the list of requests for accounts.',
    ['share'],
    change('cloud/sales/registrations/registrations.js', '>= NETWORK_REQUESTS', '>= PENDING_REQUESTS'),
  ),
  mutant(
    'unprintable-name',
    'Names may contain control characters and marks of writing direction.',
    ['text'],
    change('policy/printable.js', 'return !UNPRINTABLE.test(text);', 'return true;'),
  ),
]
