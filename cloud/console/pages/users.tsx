import type { z } from 'zod'
import { ROLES, rolesFrom } from '../../foundation/roles.ts'
import { fetchUsers, inviteUser, removeUser, updateUser } from '../../users/user-operations.ts'
import { Badge } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import { Confirm } from '../components/confirm.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { List } from '../components/table.tsx'
import type { FormFields } from '../frame/form.ts'
import { page, type ViewContext } from '../frame/page.ts'

type User = z.output<typeof fetchUsers.response>['users'][number]
type Invited = z.output<typeof inviteUser.response>
type View = ViewContext<readonly User[]>

/** No choice of a store means all stores of the account. */
const storesOf = (form: FormFields) => {
  const storeId = form.text('store_id') ?? ''
  return storeId === '' ? {} : { storeIds: [storeId] }
}

/** People who may use the console. */
export const usersPage = page<readonly User[]>({
  path: '/console/users',
  roles: rolesFrom('manager'),
  scope: 'account',
  navigation: { group: 'settings', icon: 'people' },
  title: (texts) => texts.account.users,
  lead: (at) => at.texts.account.usersLead,
  actions: {
    invite: {
      operation: inviteUser,
      input: (form) => ({ email: form.text('email'), role: form.text('role'), ...storesOf(form) }),
      done: (texts) => texts.account.invited,
      show: (result, at) => <Invitation at={at} url={(result as Invited).url} />,
    },
    role: {
      operation: updateUser,
      input: (form) => ({ userId: form.text('userId'), role: form.text('role') }),
      done: (texts) => texts.account.saved,
    },
    remove: {
      operation: removeUser,
      input: (form) => ({ userId: form.text('userId') }),
      done: (texts) => texts.account.removed,
    },
  },
  load: async (at) => (await at.run(fetchUsers, {})).users,
  view: (at) => (
    <>
      <Invite at={at} />
      <Card title={at.texts.account.users} flush>
        <List>
          {at.data.map((user) => (
            <UserRow at={at} user={user} />
          ))}
        </List>
      </Card>
    </>
  ),
})

/** Roles that the user may give: the own one and those below. */
function roleChoices(at: View) {
  const names = at.texts.frame.roles
  return ROLES.slice(ROLES.indexOf(at.user.role)).map((value) => ({ value, label: names[value] }))
}

function Invite({ at }: { at: View }) {
  const t = at.texts.account
  const stores = at.stores.map(({ storeId, tradingName }) => ({ value: storeId, label: tradingName }))
  return (
    <Card title={t.inviteTitle}>
      <ActionForm at={at} action="invite">
        <TextField form={at.form} name="email" type="email" label={t.email} required />
        <Select form={at.form} name="role" label={t.role} value="associate" choices={roleChoices(at)} />
        <Select
          form={at.form}
          name="store_id"
          label={t.chooseStore}
          choices={[{ value: '', label: t.allStores }, ...stores]}
        />
        <Submit>{t.invite}</Submit>
      </ActionForm>
    </Card>
  )
}

function Invitation({ at, url }: { at: ViewContext; url: string }) {
  const t = at.texts.account
  return (
    <Card title={t.invited}>
      <p>{t.link}</p>
      <p>
        <code>{url}</code>
      </p>
      <a class="button" href={at.path}>
        {t.users}
      </a>
    </Card>
  )
}

function UserRow({ at, user }: { at: View; user: User }) {
  const t = at.texts.account
  const name = user.name || user.email
  const stores = user.storeIds?.map((id) => at.stores.find(({ storeId }) => storeId === id)?.tradingName ?? id)
  const mayChange = user.userId !== at.user.userId && ROLES.indexOf(user.role) >= ROLES.indexOf(at.user.role)
  const about = { userId: user.userId }
  return (
    <li>
      <div>
        <strong>{name}</strong> <Badge tone={user.status === 'active' ? 'ok' : 'info'}>{t.states[user.status]}</Badge>
        <span class="sub">{user.email}</span>
        <span class="sub">
          {at.texts.frame.roles[user.role]}, {stores?.join(', ') ?? t.allStores}
        </span>
      </div>
      {mayChange ? (
        <div class="actions">
          <Confirm
            at={at}
            action="role"
            about={about}
            label={t.changeRole}
            question={name}
            explanation={t.removeText}
            confirm={t.save}
          >
            <Select
              form={at.form}
              id={`role-${user.userId}`}
              name="role"
              label={t.role}
              value={user.role}
              choices={roleChoices(at)}
            />
          </Confirm>
          <Confirm
            at={at}
            action="remove"
            about={about}
            label={t.removeUser}
            question={t.removeQuestion(name)}
            explanation={t.removeText}
            confirm={t.removeUser}
          />
        </div>
      ) : null}
    </li>
  )
}
