import type { z } from 'zod'
import { isRoleAtLeast, ROLES, rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchUsers, inviteUser, removeUser, updateUser } from '../../platform/users/user-operations.ts'
import { Badge, Card } from '../components/card.tsx'
import { Confirm, ActionButton, ActionForm, Submit } from '../components/form.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { Notice } from '../components/notice.tsx'
import { List, Pagination, rowsOfPage } from '../components/table.tsx'
import { storeNames } from '../components/all-stores.tsx'
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

/** Stores of a user in a hidden field. */
const storesIn = (form: FormFields) => {
  const storeIds = (form.text('storeIds') ?? '').split(' ').filter((id) => id !== '')
  return storeIds.length === 0 ? {} : { storeIds }
}

/** People who may use the console. */
export const usersPage = page<readonly User[]>({
  path: '/console/users',
  roles: rolesFrom('manager'),
  scope: 'account',
  navigation: { group: 'settings', icon: 'user' },
  title: (texts) => texts.account.users,
  lead: (at) => at.texts.account.usersLead,
  actions: {
    invite: {
      operation: inviteUser,
      input: (form) => ({ email: form.text('email'), role: form.text('role'), ...storesOf(form) }),
      fieldOf: (path) => (path.startsWith('storeIds') ? 'store_id' : path),
      done: (texts) => texts.account.invited,
      show: (result, at) => <Invitation at={at} invited={result as Invited} />,
    },
    renew: {
      operation: inviteUser,
      input: (form) => ({ email: form.text('email'), role: form.text('role'), ...storesIn(form) }),
      done: (texts) => texts.account.invited,
      show: (result, at) => <Invitation at={at} invited={result as Invited} />,
    },
    role: {
      operation: updateUser,
      input: (form) => ({ userId: form.text('userId'), role: form.text('role') }),
      fieldOf: (path) => (path.startsWith('storeIds') ? 'role' : path),
      done: (texts) => texts.account.saved,
    },
    remove: {
      operation: removeUser,
      input: (form) => ({ userId: form.text('userId') }),
      done: (texts) => texts.account.removed,
    },
  },
  load: async (at) => (await at.run(fetchUsers, {})).users,
  view(at) {
    const shown = rowsOfPage(at, at.data)
    return (
      <>
        <Card
          title={at.texts.account.users}
          aside={
            <a class="button quiet" href="#invite">
              {at.texts.account.inviteTitle}
            </a>
          }
          flush
        >
          <List>
            {shown.rows.map((user) => (
              <UserRow at={at} user={user} />
            ))}
          </List>
          <Pagination at={at} shown={shown.rows.length} total={at.data.length} nextCursor={shown.nextCursor} />
        </Card>
        <Invite at={at} />
      </>
    )
  },
})

/** Roles that the user may give: the own one and those below. */
function roleChoices(at: View) {
  const names = at.texts.frame.roles
  return ROLES.filter((role) => isRoleAtLeast(at.user.role, role)).map((value) => ({ value, label: names[value] }))
}

function Invite({ at }: { at: View }) {
  const t = at.texts.account
  const stores = at.stores.map(({ storeId, tradingName }) => ({ value: storeId, label: tradingName }))
  return (
    <Card title={<span id="invite">{t.inviteTitle}</span>}>
      {at.mayUseLive ? null : (
        <Notice tone="info" title={t.sandboxTitle}>
          {t.sandboxText}
        </Notice>
      )}
      <ActionForm at={at} action="invite">
        <TextField form={at.form} name="email" type="email" label={t.email} required />
        <Select
          form={at.form}
          name="role"
          label={t.role}
          hint={t.roleHint}
          value="associate"
          choices={roleChoices(at)}
        />
        <Select
          form={at.form}
          name="store_id"
          label={t.chooseStore}
          value={at.store?.storeId ?? ''}
          choices={[...stores, { value: '', label: t.allStores }]}
        />
        <p class="small soft">{t.inviteHint}</p>
        <div>
          <Submit>{t.invite}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

function Invitation({ at, invited }: { at: ViewContext; invited: Invited }) {
  const t = at.texts.account
  const { url, email, role, storeIds, expiresAt, sandboxOnly } = invited
  return (
    <Card title={t.invited}>
      <p>
        <strong>{email}</strong>: {at.texts.frame.roles[role]}, {storesText(at, storeIds)}
        {sandboxOnly ? `, ${t.sandboxOnly}` : ''}
      </p>
      <p>{t.link(at.formats.date(Date.parse(expiresAt)))}</p>
      <p>
        <code>{url}</code>
      </p>
      <div class="form-foot">
        <button type="button" class="button main needs-script" data-copy={url} data-done={t.copied}>
          {t.copy}
        </button>
        <a class="button" href={at.path}>
          {t.users}
        </a>
      </div>
    </Card>
  )
}

function storesText(at: ViewContext, storeIds: readonly string[] | null | undefined): string {
  return storeIds ? storeNames(at, storeIds) : at.texts.account.allStores
}

function UserRow({ at, user }: { at: View; user: User }) {
  const t = at.texts.account
  const name = user.name || user.email
  const mayChange = user.userId !== at.user.userId && isRoleAtLeast(at.user.role, user.role)
  const about = { userId: user.userId }
  return (
    <li>
      <div>
        <strong>{name}</strong> <Badge tone={user.status === 'active' ? 'ok' : 'info'}>{t.states[user.status]}</Badge>
        {user.name === '' ? null : <span class="sub">{user.email}</span>}
        <span class="sub">
          {at.texts.frame.roles[user.role]}, {storesText(at, user.storeIds)}
        </span>
        {user.lastSignInAt === undefined ? null : (
          <span class="sub">{t.lastSignIn(at.formats.ago(Date.parse(user.lastSignInAt), at.nowMs))}</span>
        )}
      </div>
      {mayChange ? (
        <div class="row">
          {user.status === 'invited' ? (
            <ActionButton
              at={at}
              action="renew"
              about={{ email: user.email, role: user.role, storeIds: user.storeIds?.join(' ') ?? '' }}
            >
              {t.newLink}
            </ActionButton>
          ) : null}
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
