import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { StoreName } from '../../platform/stores/schema.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { fetchProduct } from '../../shop/catalogue/operations.ts'
import {
  registerProductToStore,
  removeProductFromStore,
  updateProduct,
} from '../../shop/catalogue/product-operations.ts'
import type { Product } from '../../shop/catalogue/schema.ts'
import { uploadImageToProduct } from '../../shop/images/operations.ts'
import { Picture } from '../components/alarm-card.tsx'
import { Badge, Card, EmptyState, Pairs } from '../components/card.tsx'
import { FileInput, Select, TextField } from '../components/fields.tsx'
import { ActionForm, Confirm, Submit } from '../components/form.tsx'
import { productInput, ProductFields, productValues } from '../components/product-fields.tsx'
import { Table } from '../components/table.tsx'
import { NO_FORM, VERSION, type FormState } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

interface OneProduct {
  /** With the price of the chosen store, or with the general price if that store does not sell it. */
  readonly product: Product
  readonly isHere: boolean
  readonly prices: readonly StorePrice[]
}

interface StorePrice {
  readonly store: StoreName
  /** Price in EUR; undefined if the store does not sell the product. */
  readonly price: number | undefined
}

type View = ViewContext<OneProduct | undefined>

/** Stores whose price the page reads, the chosen one among them. */
const STORES_SHOWN = 25
const MANAGERS = rolesFrom('manager')
const LIST = '/console/products'

/** One product: its fields, its price in each store, its picture. */
export const productPage = page<OneProduct | undefined>({
  path: '/console/products/:productId',
  roles: rolesFrom('viewer'),
  scope: 'store',
  upload: uploadImageToProduct,
  title: (texts) => texts.products.product,
  lead: (at) => at.data && `${at.data.product.name} · ${at.data.product.ean}`,
  actions: {
    change: {
      operation: updateProduct,
      roles: MANAGERS,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        productId: at.params['productId'],
        ...productInput(form, null),
        [VERSION]: form.text(VERSION),
      }),
      done: (texts) => texts.products.saved,
    },
    register: {
      operation: registerProductToStore,
      roles: MANAGERS,
      input: (form, at) => ({
        storeId: form.text('storeId'),
        productId: at.params['productId'],
        price: form.number('price'),
      }),
      done: (texts) => texts.products.registered,
    },
    remove: {
      operation: removeProductFromStore,
      roles: MANAGERS,
      input: (_, at) => ({ storeId: at.store?.storeId, productId: at.params['productId'] }),
      done: (texts) => texts.products.removed,
    },
    picture: {
      operation: uploadImageToProduct,
      roles: MANAGERS,
      input: (form, at) => ({ productId: at.params['productId'], snapshot: form.file('snapshot') }),
      done: (texts) => texts.products.uploaded,
    },
  },
  load: productOfPage,
  view(at) {
    const t = at.texts.products
    const { data } = at
    if (!data)
      return (
        <Card>
          <EmptyState icon="product" title={t.unknown} />
          <div class="empty">
            <a class="button" href={LIST}>
              {t.back}
            </a>
          </div>
        </Card>
      )
    const { product, isHere } = data
    const mayChange = at.has(MANAGERS)
    return (
      <div class="stack wide">
        <nav class="row" aria-label={t.back}>
          <a class="button" href={LIST}>
            {t.back}
          </a>
          {isHere && at.opens('/console/offers/new') ? (
            <a class="button" href={`/console/offers/new?${new URLSearchParams({ ean: product.ean })}`}>
              {t.newOffer}
            </a>
          ) : null}
        </nav>
        {isHere && mayChange ? <Change at={at} product={product} /> : <Facts at={at} product={product} />}
        <Stores at={at} data={data} />
        <PictureCard at={at} product={product} />
      </div>
    )
  },
})

/** Undefined if the account has no such product, or none of the user's stores sells it. */
async function productOfPage(at: PageContext): Promise<OneProduct | undefined> {
  const productId = at.params['productId'] ?? ''
  const find = async (store: StoreName | undefined) => {
    try {
      return await at.run(fetchProduct, { productId, ...(store && { storeId: store.storeId }) })
    } catch (error) {
      if (!['not-found', 'invalid-argument'].includes(asFailure(error).code)) throw error
      return undefined
    }
  }
  const here = await find(at.store)
  const found = here ?? (await find(undefined))
  if (!found) return undefined
  const others = at.stores.filter(({ storeId }) => storeId !== at.store?.storeId)
  const prices = await Promise.all(
    others.slice(0, STORES_SHOWN - 1).map(async (store) => ({ store, price: (await find(store))?.price })),
  )
  const { success: _, label: _label, ...product } = found
  const first = at.store ? [{ store: at.store, price: here?.price }] : []
  return { product, isHere: here !== undefined, prices: [...first, ...prices] }
}

function Change({ at, product }: { at: View; product: Product }) {
  const t = at.texts.products
  const form = at.form.id === 'change' ? at.form : NO_FORM
  return (
    <Card title={t.edit}>
      <div class="stack">
        <p class="soft">{t.editText}</p>
        <ActionForm at={at} action="change">
          <input type="hidden" name={VERSION} value={product.updatedAt} />
          {form.errors[VERSION] === undefined ? null : <StoredNow at={at} form={form} product={product} />}
          <ProductFields at={at} form={form} product={product} />
          <div class="form-foot">
            <Submit>{t.save}</Submit>
          </div>
        </ActionForm>
        <div>
          <Confirm
            at={at}
            action="remove"
            label={t.remove}
            question={t.removeQuestion(product.name, at.store?.tradingName ?? '')}
            explanation={t.removeText}
            confirm={t.remove}
          />
        </div>
      </div>
    </Card>
  )
}

/** What the other editor stored, where it differs from what this one typed. */
function StoredNow({ at, form, product }: { at: View; form: FormState; product: Product }) {
  const t = at.texts.products
  const labels: Readonly<Record<string, unknown>> = t
  const pairs = Object.entries(productValues(product, at)).flatMap(([name, stored]) => {
    const label = labels[name]
    return typeof label !== 'string' || (form.values[name] ?? '') === stored ? [] : [[label, stored || '–'] as const]
  })
  return pairs.length === 0 ? null : (
    <section aria-label={t.storedNow} class="stack tight">
      <strong>{t.storedNow}</strong>
      <Pairs pairs={pairs} />
    </section>
  )
}

/** The product for users who may not change it, or may not change it here. */
function Facts({ at, product }: { at: View; product: Product }) {
  const t = at.texts.products
  const { brand, category, unit, weight, description, deposit } = product
  const pairs: (readonly [string, string | undefined])[] = [
    [t.name, product.name],
    [t.ean, product.ean],
    [t.priceIn, at.formats.money(product.price)],
    [t.oldPrice, product.oldPrice === undefined ? undefined : at.formats.money(product.oldPrice)],
    [t.vat, String(product.vat)],
    [t.brand, brand],
    [t.category, category],
    [t.unit, unit],
    [t.weight, weight],
    [t.deposit, deposit === undefined ? undefined : at.formats.money(deposit)],
    [t.tag, product.tagged ? t.yes : t.no],
    [t.description, description],
  ]
  return (
    <Card title={product.name}>
      <Pairs pairs={pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))} />
    </Card>
  )
}

function Stores({ at, data: { product, isHere, prices } }: { at: View; data: OneProduct }) {
  const t = at.texts.products
  return (
    <Card title={t.stores}>
      <div class="stack">
        <Table
          caption={t.stores}
          rows={prices}
          columns={[
            {
              label: t.store,
              kind: 'head',
              cell: ({ store: { storeId, tradingName } }) =>
                storeId === at.store?.storeId ? (
                  <>
                    {tradingName} <Badge tone="info">{t.thisStore}</Badge>
                  </>
                ) : (
                  <a href={`${at.path}?store=${storeId}`}>{tradingName}</a>
                ),
            },
            {
              label: t.priceIn,
              kind: 'number',
              cell: ({ price }) => (price === undefined ? t.notSold : at.formats.money(price)),
            },
          ]}
        />
        {at.storesTotal > prices.length ? (
          <p class="small soft">{t.moreStores(at.formats.number(prices.length), at.formats.number(at.storesTotal))}</p>
        ) : null}
        {at.has(MANAGERS) ? <Register at={at} product={product} isHere={isHere} prices={prices} /> : null}
      </div>
    </Card>
  )
}

function Register({ at, isHere, prices }: { at: View } & OneProduct) {
  const t = at.texts.products
  const form = at.form.id === 'register' ? at.form : NO_FORM
  const sold = new Set(prices.flatMap(({ store, price }) => (price === undefined ? [] : [store.storeId])))
  const lacking = at.stores.filter(({ storeId }) => !sold.has(storeId))
  const missing = isHere ? undefined : at.store
  if (lacking.length === 0) return null
  return (
    <ActionForm at={at} action="register">
      <h3>{missing ? t.registerHere(missing.tradingName) : t.register}</h3>
      <div class="grid">
        <Select
          form={form}
          name="storeId"
          label={t.store}
          value={missing?.storeId ?? ''}
          choices={lacking.map(({ storeId, tradingName }) => ({ value: storeId, label: tradingName }))}
        />
        <TextField
          form={form}
          id="register-price"
          name="price"
          label={t.price}
          hint={t.registerText}
          inputmode="decimal"
        />
      </div>
      <div>
        <Submit main={false}>{t.registerButton}</Submit>
      </div>
    </ActionForm>
  )
}

function PictureCard({ at, product: { imageUrl } }: { at: View; product: Product }) {
  const t = at.texts.products
  const form = at.form.id === 'picture' ? at.form : NO_FORM
  // The operation names the other way to send a picture.
  const error = form.errors['snapshot'] ?? form.errors['imageBase64']
  return (
    <Card title={t.picture}>
      <div class="stack">
        <div class="row">
          <Picture url={imageUrl} />
          {imageUrl === undefined ? (
            <p class="soft">{t.noPicture}</p>
          ) : (
            <a class="button" href={imageUrl} rel="noreferrer">
              {t.openPicture}
            </a>
          )}
        </div>
        {at.has(MANAGERS) ? (
          <ActionForm at={at} action="picture" upload>
            <FileInput
              form={{ ...form, errors: error === undefined ? {} : { snapshot: error } }}
              name="snapshot"
              label={t.choosePicture}
              hint={t.pictureHint}
              accept="image/jpeg,image/png,image/webp"
              required
            />
            <div>
              <Submit main={false}>{t.upload}</Submit>
            </div>
          </ActionForm>
        ) : null}
      </div>
    </Card>
  )
}
