/**
 * The fewest statements that keep the guarantees of four operations, on the tables of the cloud. `why` is the reason
 * for a statement. Each statement is one round trip. A writing statement is one transaction (READ COMMITTED): its first
 * part checks and locks the rows of the decision. The other parts write only if the first part found a row.
 *
 *   fetchProducts         CALLER · PAGE
 *   insertProduct         CALLER · INSERT_PRODUCT
 *   verifyProtectedItem   CALLER · FACTS · GRANT
 *   purchase              CALLER · CHECK_IN   CALLER · BASKET · START_CHECKOUT   CALLER · UNPAID · PAY
 *
 * Rows are passed as JSON with the names of the columns. Counters of a store are appended as rows (`added_products`,
 * `added_to_day`), and a job would sum them up. If each counter had a single row, all writes of a store would wait for
 * each other.
 */
export interface Statement {
  readonly name: string
  readonly why: string
  readonly text: string
}

/** Tables for appended counters. */
export const OWN_TABLES = `
  create table added_products (store_id text not null, category text not null, products bigint not null);
  create index added_products_by_store on added_products (store_id, category);
  create table added_to_day (store_id text not null, day text not null, counts text not null);
  create index added_to_day_by_store on added_to_day (store_id, day);
`

/** SQL that inserts the row of this parameter if the part `from` of the statement found a row. */
const rowOf = (table: string, parameter: string, from: string) =>
  `insert into ${table} select r.* from ${from}, json_populate_record(null::${table}, ${parameter}) r`
const rowsOf = (table: string, parameter: string, from: string) =>
  `insert into ${table} select r.* from ${from}, json_populate_recordset(null::${table}, ${parameter}) r`

/** SQL for the position of the transaction in the lists that clients poll (cloud/platform/persistence/positions.ts). */
const POSITION = '(select value from position_offset) + pg_current_xact_id()::text::bigint'

export const CALLER: Statement = {
  name: 'caller',
  why: '401, 403 and 429 come before the body is read; a signing key that another process rolled must not sign any more',
  text: `
    select k.key_id, k.account_id || '.' || k.mode as tenant, a.package,
      (select value from installation where name = 'key_generation') as generation
    from api_key k join account a using (account_id)
    where k.hash = $1 and a.status = 'active'
      and (k.revoked_ms is null or k.revoked_ms > $2) and (k.expires_ms is null or k.expires_ms > $2)`,
}

export const PAGE: Statement = {
  name: 'page',
  why: 'the store must be the caller’s; the answer holds its products, whether more follow, and how many there are',
  text: `
    select d.product_id, d.doc,
      (select coalesce(sum(products), 0) from product_count where store_id = $1 and category = '')
      + (select coalesce(sum(products), 0) from added_products where store_id = $1 and category = '') as total
    from store s left join lateral (
      select product_id, doc from store_product where store_id = s.store_id and product_id > $3 order by product_id limit $4
    ) d on true
    where s.store_id = $1 and s.tenant = $2`,
}

export const INSERT_PRODUCT: Statement = {
  name: 'insert_product',
  why: 'product, document, search words, counts, audit entry and event are stored together, once for an EAN of the account',
  text: `
    with own as (select store_id from store where store_id = $1 and tenant = $2),
      made as (${rowOf('product', '$3', 'own')} on conflict (tenant, ean) do nothing returning product_id),
      numbered as (select nextval('listing_number') as listing_no from made),
      listed as (
        insert into store_product
        select r.* from numbered, jsonb_populate_record(null::store_product, $4::jsonb || to_jsonb(numbered)) r),
      words as (
        insert into product_word
        select $1, word, listing_no / 4096, ' ' || substr(digits, (listing_no % 4096 / 64)::int + 1, 1)
          || substr(digits, (listing_no % 64)::int + 1, 1)
        from numbered, unnest($5::text[]) as word,
          (values ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_')) as d(digits)
        on conflict (store_id, word, block) do update set products = product_word.products || excluded.products),
      counted as (insert into added_products select $1, c, 1 from made, unnest($6::text[]) c),
      audited as (${rowOf('audit_entry', '$7', 'made')}),
      emitted as (${rowOf('outbox_event', '$8', 'made')})
    select (select count(*) from own) as stores, (select count(*) from made) as made`,
}

export const CHECK_IN: Statement = {
  name: 'check_in',
  why: 'the store must be the caller’s and have scan and go; session, count of the day and audit entry are stored together',
  text: `
    with own as (select store_id from store where store_id = $1 and tenant = $2 and has_scan_and_go = 1),
      counted as (insert into added_to_day select store_id, $3, $4 from own),
      audited as (${rowOf('audit_entry', '$5', 'own')})
    ${rowOf('shopping_session', '$6', 'own')} returning session_id`,
}

export const BASKET: Statement = {
  name: 'basket',
  why: 'prices come from the store; session and store must be the caller’s; counted stock must be reserved',
  text: `
    select t.store_id, t.security_tag_mode, s.user_id, s.spot_check_due, p.*, sp.price_cent as store_price, l.product_id as counted
    from shopping_session s join store t using (store_id)
      left join product p on p.tenant = s.tenant and p.ean = $3
      left join store_product sp on sp.store_id = t.store_id and sp.product_id = p.product_id
      left join stock_level l on l.store_id = t.store_id and l.product_id = p.product_id
    where s.session_id = $1 and s.tenant = $2`,
}

export const START_CHECKOUT: Statement = {
  name: 'start_checkout',
  why: 'purchase, lines, units, audit entry and event are stored together',
  text: `
    with one as (select 1),
      made as (${rowOf('purchase', '$1', 'one')}),
      lines as (${rowsOf('purchase_line', '$2', 'one')}),
      units as (${rowsOf('purchase_unit', '$3', 'one')}),
      emitted as (${rowOf('outbox_event', '$5', 'one')})
    ${rowOf('audit_entry', '$4', 'one')}`,
}

export const UNPAID: Statement = {
  name: 'unpaid',
  why: 'the receipt is made and signed from the purchase, its lines and units, and the version of the store’s policy',
  text: `
    select p.purchase_id, p.store_id, p.session_id, p.status, p.rev, p.total_cent, p.created_ms, p.security_tag_mode, p.checkout_session_id,
      s.document_version, s.trading_name, s.street, s.postal_code, s.city, s.country_code,
      l.line_id, l.name, l.ean, l.price_cent, l.quantity, l.vat, l.category, l.brand, l.price_origin, u.unit_no, u.item_id
    from purchase p join store s using (store_id)
      join purchase_line l using (purchase_id) left join purchase_unit u using (line_id)
    where p.purchase_id = $1 and p.tenant = $2 order by l.line_no, u.unit_no`,
}

export const PAY: Statement = {
  name: 'pay',
  why: 'the purchase is paid once, with its receipt, counts, stock, audit entry and event; none of them without the others',
  text: `
    with paid as (
        update purchase set status = 'SUCCESS', completed_ms = $3, cti = $4, receipt_token = $5, receipt_exp = $6, payment_by_ms = null,
          completed_position = ${POSITION}, rev = rev + 1
        where purchase_id = $1 and rev = $2 and status = 'PENDING_PAYMENT' returning purchase_id, session_id, store_id),
      units as (update purchase_unit u set receipt_index = 0 from paid where u.purchase_id = paid.purchase_id),
      session as (
        update shopping_session s set completed = completed + 1 from paid where s.session_id = paid.session_id returning completed),
      counted as (
        insert into added_to_day select store_id, $7, $8 from paid
        union all select store_id, $7, '{"sessions_completed":1}' from paid, session where completed = 1),
      used as (delete from stock_reservation where owner_id in (select purchase_id from paid)),
      audited as (${rowOf('audit_entry', '$9', 'paid')}),
      emitted as (${rowOf('outbox_event', '$10', 'paid')})
    select count(*) as paid from paid`,
}

export const FACTS: Statement = {
  name: 'facts',
  why: 'the decision needs device, store, item, purchase and right',
  text: `
    select to_json(d) as device, to_json(s) as store, i.item_id, i.rev as item_rev, i.item_status, i.category, i.brand, i.protection_technology,
      i.line_id, i.unit_no, p.purchase_id, p.rev as purchase_rev, p.status, p.total_cent, l.price_cent,
      r.state, r.until_ms,
      exists (select from agent a where a.store_id = s.store_id) as has_agents,
      exists (select from webhook_subscription w
        where w.tenant = $1 and w.event in ('protection.authorization.requested', 'protection.authorization.granted', '*')) as is_followed
    from device d join store s using (store_id)
      left join protected_item i on i.tenant = $1 and i.epc = $3
      left join purchase p on p.purchase_id = i.purchase_id and p.tenant = $1
      left join purchase_line l on l.line_id = i.line_id
      left join unit_right r on r.line_id = i.line_id and r.unit_no = i.unit_no and r.right_class = 'release'
    where d.device_id = $2 and d.tenant = $1`,
}

export const GRANT: Statement = {
  name: 'grant',
  why: 'the right is leased to one device only; grant, events, decision and audit entry are stored with the lease',
  text: `
    with same as (
        select i.item_id from protected_item i join purchase p using (purchase_id)
        where i.item_id = $1 and i.rev = $2 and p.rev = $3 for share),
      leased as (
        ${rowOf('unit_right', '$4', 'same')}
        on conflict (line_id, unit_no, right_class) do update
          set state = excluded.state, nonce = excluded.nonce, device_id = excluded.device_id, until_ms = excluded.until_ms
          where unit_right.state = 'free'
        returning nonce),
      granted as (${rowOf('protection_authorization', '$5', 'leased')}),
      units as (${rowOf('authorization_unit', '$6', 'leased')}),
      told as (
        insert into protection_event
          (event_id, tenant, store_id, type, device_id, purchase_id, occurred_ms, processed_ms, body, position)
        select r.event_id, r.tenant, r.store_id, r.type, r.device_id, r.purchase_id, r.occurred_ms, r.processed_ms, r.body, ${POSITION}
        from leased, json_populate_recordset(null::protection_event, $7) r),
      decided as (${rowOf('protection_decision', '$8', 'leased')}),
      audited as (${rowOf('audit_entry', '$9', 'leased')})
    select count(*) as leased from leased`,
}
