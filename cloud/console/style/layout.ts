/** Frame of a page: ribbon, side bar or bottom bar, header, content. */
export const LAYOUT = `
.skip { position: absolute; left: -99rem; top: 0; z-index: 60; padding: .7rem 1rem; background: var(--surface); color: var(--ink) } .skip:focus { left: 0 }
.ribbon { position: sticky; top: 0; z-index: 40; display: flex; justify-content: center; padding: .3rem var(--gap-4); color: var(--on-test); background:
  repeating-linear-gradient(-45deg, var(--test) 0 16px, #f3b51c 16px 32px); font-size: var(--small); font-weight: 650; text-align: center }
.ribbon p { padding: 0 .6rem; border-radius: 99px; background: var(--test) }
.connection:not([hidden]) { position: sticky; top: 0; z-index: 45; display: flex; gap: .7rem; align-items: start; padding: var(--gap-3) var(--gap-4); background: var(--warn-soft); color: var(--warn); border-bottom: 2px solid currentColor } .connection p { color: var(--ink) } .connection strong { color: var(--warn) }
.is-test .connection { top: 2rem } .is-lost :is(#page, .side, .top, .bottom) { filter: grayscale(1) }
.frame { display: grid; grid-template-columns: var(--side-width) minmax(0, 1fr); min-height: 100vh; min-height: 100dvh }
.is-test .frame { min-height: calc(100vh - 2rem); min-height: calc(100dvh - 2rem); border: solid var(--test); border-width: 0 5px 5px }
.side { background: var(--side); color: var(--side-ink) }
.side-inner { position: sticky; top: 0; display: flex; flex-direction: column; gap: var(--gap-4); height: 100dvh; overflow-y: auto; padding: var(--gap-4) var(--gap-3) }
.is-test .side-inner { top: 2rem; height: calc(100dvh - 2rem) }
.brand { display: flex; align-items: center; gap: .6rem; min-height: var(--touch); padding: 0 var(--gap-2); color: inherit; font-size: 1.25rem; font-weight: 680; letter-spacing: -.02em; text-decoration: none }
.brand:hover { color: inherit } .side .brand { color: #fff }
.nav-group + .nav-group { margin-top: var(--gap-4) }
.nav-group > p { padding: 0 .75rem var(--gap-1); font-size: var(--small); color: var(--side-soft) }
.nav-link { display: flex; align-items: center; gap: .7rem; min-height: var(--touch); padding: 0 .75rem; border-radius: var(--radius); color: inherit; text-decoration: none; font-weight: 500 }
.nav-link:hover { background: var(--side-on); color: #fff } .nav-link[aria-current] { background: var(--side-on); color: #fff; font-weight: 620 }
.waits:not([hidden]) { display: inline-grid; place-items: center; min-width: 1.5rem; padding: 0 .4rem; border-radius: 1rem; background: var(--warn-soft); color: var(--warn); font-size: .8125rem; font-weight: 680; line-height: 1.5rem }
.waits.alarm { background: var(--alarm); color: var(--on-alarm) } .nav-link .waits, .menu-item .waits { margin-inline-start: auto }
.side :focus-visible { outline-color: #6fcdd2 }
.side-foot { margin-top: auto; padding: 0 .75rem; font-size: var(--small); color: var(--side-soft) }
.main-column { display: flex; flex-direction: column; min-width: 0 }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: var(--gap-2) var(--gap-3); min-height: var(--bar); padding: var(--gap-2) var(--gap-5); background: var(--surface); border-bottom: 1px solid var(--line) }
.top .brand { display: none } .top .space { flex: 1 }
.content { flex: 1; width: 100%; max-width: 84rem; padding: var(--gap-5); } .content:focus { outline: none }
.page-head { display: flex; flex-wrap: wrap; align-items: end; justify-content: space-between; gap: var(--gap-3); margin-bottom: var(--gap-5) }
.page-head p { margin-top: .2rem; color: var(--ink-soft) }
.bottom { display: none }
.menu-button { display: inline-flex; align-items: center; gap: .5rem; min-height: var(--touch); max-width: 100%; padding: 0 .75rem; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); cursor: pointer; font-weight: 550; text-align: left }
.menu-button:hover { background: var(--raised) } .menu-button span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.avatar { display: grid; place-items: center; flex: none; width: 1.75rem; height: 1.75rem; border-radius: 50%; background: var(--accent-soft); color: var(--accent); font-size: var(--small); font-weight: 680 } .avatar::before { content: attr(data-initials) / '' }
.popover { inset: 0; width: min(24rem, calc(100vw - 2rem)); max-height: min(80dvh, 36rem); margin: auto; padding: var(--gap-2); overflow-y: auto; color: var(--ink); background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow-high) }
.popover::backdrop { background: rgb(6 18 22 / .45) }
.menu-title { padding: var(--gap-2) .75rem; } .menu-title strong { display: block }
.menu-item { display: flex; align-items: center; gap: .7rem; width: 100%; min-height: var(--touch); padding: .4rem .75rem; border: 0; border-radius: var(--radius-small); background: none; color: inherit; text-align: left; text-decoration: none; cursor: pointer }
.menu-item:hover { background: var(--raised); color: inherit } .menu-item[aria-current] { font-weight: 650 } .menu-item .check { margin-left: auto; color: var(--accent) } .menu-item small { display: block; color: var(--ink-soft); font-weight: 400 }
.menu-line { height: 1px; margin: var(--gap-2) 0; background: var(--line) }
.mode { display: inline-flex; padding: 3px; border-radius: var(--radius); background: var(--raised) }
.mode a, .mode > button { display: inline-flex; align-items: center; min-height: calc(var(--touch) - 6px); padding: 0 .8rem; border-radius: calc(var(--radius) - 3px); color: var(--ink-soft); font-size: var(--small); font-weight: 600; text-decoration: none }
.mode > button { border: 0; background: none; font: inherit; font-size: var(--small); font-weight: 600; cursor: pointer } .mode a[aria-current] { background: var(--surface); color: var(--ink); box-shadow: var(--shadow) } .is-test .mode a[aria-current] { background: var(--test); color: var(--on-test) }
@media (min-width: 60rem) { .popover.at-top { inset: 3.6rem 1.5rem auto auto; margin: 0 } .popover.at-top.left { inset: 3.6rem auto auto calc(var(--side-width) + 1.5rem) } .is-test .popover.at-top { top: 5.6rem } .popover.at-top::backdrop { background: none } }
@media (max-width: 59.99rem) {
  .frame { display: block; padding-bottom: calc(4.5rem + env(safe-area-inset-bottom)) } .is-test .frame { border-width: 0 3px } .side { display: none }
  .top { padding: var(--gap-2) var(--gap-4) } .top .brand { display: flex; padding: 0; margin-right: auto } .top .brand b { display: none } .top .space { display: none }
  .content { padding: var(--gap-4) }
  .page-head { margin-bottom: var(--gap-4) }
  .bottom { position: fixed; inset: auto 0 0; z-index: 30; display: flex; padding-bottom: env(safe-area-inset-bottom); background: var(--surface); border-top: 1px solid var(--line) }
  .is-test .bottom { border-top: 4px solid var(--test) }
  .bottom .tab { flex: 1 1 0; display: flex; flex-direction: column; align-items: center; justify-content: center; gap: .1rem; min-width: 0; min-height: 3.75rem; padding: .2rem; border: 0; background: none; color: var(--ink-soft); font-size: .75rem; font-weight: 550; text-decoration: none; cursor: pointer; text-align: center }
  .bottom .tab { position: relative } .bottom .tab .waits { position: absolute; inset-block-start: .2rem; inset-inline-start: calc(50% + .4rem); min-width: 1.25rem; font-size: .75rem; line-height: 1.25rem }
  .bottom .tab span { max-width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  .bottom .tab[aria-current] { color: var(--accent); font-weight: 680; box-shadow: inset 0 3px var(--accent) } .bottom .tab:focus-visible { outline-offset: -3px }
}
@media (max-width: 30rem) { .top .menu-button.store { order: 3; flex: 1 0 100% } .top .account span.name { display: none } .top .account { padding: 0 .4rem } }
.alone { display: grid; align-content: start; justify-items: center; min-height: 100dvh; padding: max(4vh, 1rem) var(--gap-4) var(--gap-6) }
.alone > main { width: 100%; max-width: 27rem; } .alone .brand { color: var(--ink); font-size: 1.5rem; margin-bottom: var(--gap-4) } .alone footer { margin-top: var(--gap-4); text-align: center }
`
