import { INVITED_ROLES, invitation, MAKERS } from './makers.ts'
import { PASSWORD } from '../scene/party-users.ts'
import { storeOf } from '../scene/scene.ts'
import type { Recipe } from './protection-recipes.ts'

/** A password that no user has at the start. */
const OTHER_PASSWORD = 'five other words nobody guesses'

/** Requests for operations about users and their sessions. */
export const USER_RECIPES: Readonly<Record<string, Recipe>> = {
  inviteUser: (scene) => invitation(scene),
  acceptInvitation: async (scene) => {
    const made = await scene.call('inviteUser', invitation(scene), 'user')
    const token = String(made?.['url'] ?? 'x').split('/')
    return { token: token.at(-1), name: `Herr ${scene.text()}`, password: PASSWORD }
  },
  updateUser: async (scene) => ({
    userId: await MAKERS['usr']?.(scene),
    role: scene.chance.one(INVITED_ROLES),
    ...(scene.chance.happens(0.3) && { storeIds: [storeOf(scene)] }),
  }),
  removeUser: async (scene) => ({ userId: await MAKERS['usr']?.(scene) }),
  signIn: async (scene) => {
    // Restores the owner's password.
    await scene.call('fetchProfile', {}, 'user')
    return { email: scene.party.owner?.email ?? 'nobody@shop.example', password: PASSWORD }
  },
  updateProfile: (scene) => ({ name: `Frau ${scene.text()}` }),
  changePassword: () => ({ password: PASSWORD, newPassword: OTHER_PASSWORD }),
}
