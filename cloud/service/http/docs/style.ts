/** Styles of the reference page for light and dark, phone, desktop and print. */
export const STYLE = `
:root{color-scheme:light dark;--ink:#1a1d21;--soft:#59626e;--paper:#fff;--side:#f6f7f9;--line:#dfe3e8;--code:#f3f5f8;--accent:#0b57c4;--mark:#e8f0fd;--ok:#0a6640;--bad:#b3261e;--warn:#8a4b00}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#a2acb8;--paper:#121519;--side:#181c21;--line:#2c333c;--code:#1b2026;--accent:#86b5ff;--mark:#1a2a44;--ok:#5fd39a;--bad:#ff9b91;--warn:#ffc46b}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif;color:var(--ink);background:var(--paper);display:grid;grid-template-columns:17.5rem minmax(0,1fr)}
a{color:var(--accent)}
code,pre,textarea,kbd{font:13.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{background:var(--code);padding:.1em .3em;border-radius:4px;overflow-wrap:anywhere}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:1rem;background:var(--paper);padding:.5rem 1rem;z-index:9}
.bar{display:none}
nav{display:block;position:sticky;inset:0 auto auto 0;top:0;margin:0;width:auto;height:100vh;max-height:none;overflow-y:auto;padding:1.4rem 1.1rem 3rem;border:0;border-right:1px solid var(--line);background:var(--side);color:inherit}
nav p{margin:0 0 .9rem;font-weight:700;font-size:1.1rem}
nav p a{color:var(--ink);text-decoration:none}
nav p span{font-weight:400;font-size:.85rem;color:var(--soft)}
nav b{display:block;margin:1.3rem 0 .3rem;font-size:.8rem;font-weight:650;color:var(--soft)}
nav ul{list-style:none;margin:0;padding:0}
nav li a{display:block;padding:.19rem .5rem;border-radius:5px;color:var(--ink);text-decoration:none;font-size:.9rem;overflow-wrap:anywhere}
nav li a:hover{text-decoration:underline}
nav li a[aria-current]{background:var(--mark);color:var(--accent);font-weight:600}
nav input{width:100%}
#result-count{margin:.4rem 0 0;font-size:.85rem;font-weight:400;color:var(--soft)}
#results{list-style:none;margin:.3rem 0 0;padding:0}
#results small{margin-left:.5em;white-space:nowrap;color:var(--soft)}
#results span{display:block;color:var(--soft);font-size:.82rem}
.found{background:var(--mark);scroll-margin-top:5rem}
main{padding:2.2rem clamp(1rem,4vw,3.5rem) 6rem;max-width:92rem;min-width:0}
h1{margin:0 0 .6rem;font-size:1.9rem;line-height:1.2;letter-spacing:-.01em}
h2{margin:3.5rem 0 0;padding-bottom:.4rem;font-size:1.45rem;border-bottom:1px solid var(--line)}
h3{margin:0;font-size:1.15rem;line-height:1.3;overflow-wrap:anywhere}
h3 a{color:inherit;text-decoration:none}
h3 a:hover{text-decoration:underline}
h4{margin:1.3rem 0 .3rem;font-size:.95rem}
.lead{max-width:46rem}
.links{display:flex;flex-wrap:wrap;gap:.4rem 1.4rem;padding:0;list-style:none}
.guide{max-width:46rem}
.guide h3{margin-top:1.6rem}
article{padding:2rem 0;border-bottom:1px solid var(--line)}
article header{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem .8rem}
.tag{padding:0 .55em;border:1px solid var(--line);border-radius:99px;font-size:.78rem;color:var(--soft)}
.cols{display:grid;gap:0 2.5rem}
.text,.samples{min-width:0}
.text>p{max-width:46rem}
.meta{color:var(--soft);font-size:.92rem}
.fields,.codes{list-style:none;margin:0;padding:0}
.codes{max-width:60rem}
.codes li{padding:.5rem 0;border-top:1px solid var(--line);scroll-margin-top:4.5rem}
.codes li:target{background:var(--mark)}
#codes~h3{margin-top:1.8rem}
.fields li{padding:.5rem 0;border-top:1px solid var(--line)}
.fields li:first-child{border-top:0}
.fields code{background:none;padding:0;font-weight:600}
.fields i{font-style:normal;color:var(--soft);font-size:.88rem;overflow-wrap:anywhere}
.fields small{font-size:.82rem;color:var(--soft)}
.fields small::before{content:'· ';margin-left:.2em}
.fields em{font-style:normal;color:var(--warn);font-size:.8rem;font-weight:600}
.fields div{font-size:.92rem;color:var(--soft)}
details{margin-top:.9rem}
summary{cursor:pointer;font-weight:600;font-size:.95rem;padding:.25rem 0}
.text summary{min-height:28px}
.errors{margin:.3rem 0 0;padding:0;list-style:none;font-size:.92rem}
.errors li{padding:.3rem 0;overflow-wrap:anywhere}
.errors b{display:inline-block;min-width:2.6rem}
.samples details{position:relative;margin:.7rem 0 0;border:1px solid var(--line);border-radius:8px;background:var(--code);overflow:hidden}
.samples summary{padding:.4rem .8rem;font-size:.87rem}
pre{margin:0;padding:.3rem .8rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere}
.samples code{background:none;padding:0}
button,input{font:inherit;min-height:36px;padding:.2rem .8rem;border:1px solid var(--line);border-radius:7px;background:var(--paper);color:var(--ink)}
input{border-color:var(--soft);min-width:0;font-weight:400}
button{cursor:pointer}
button.send,button.try{border-color:var(--accent);background:var(--accent);color:var(--paper);font-weight:600}
button.try{margin-top:.9rem}
button.copy{position:absolute;top:.3rem;right:.4rem;min-height:26px;padding:0 .6rem;font:13px system-ui,sans-serif}
form{display:grid;gap:.7rem;margin-top:.9rem;padding:.9rem;border:1px solid var(--line);border-radius:8px}
form label{display:grid;gap:.25rem;font-size:.87rem;font-weight:600}
form label small{font-weight:400;color:var(--soft)}
textarea{width:100%;min-height:7rem;padding:.6rem;border:1px solid var(--soft);border-radius:7px;background:var(--paper);color:var(--ink);resize:vertical;field-sizing:content;max-height:30rem}
.row{display:flex;gap:.6rem;flex-wrap:wrap;align-items:center}
.refused{margin:0;color:var(--bad);font-weight:600;font-size:.92rem}
output{display:block;border-top:1px solid var(--line)}
output:empty{display:none}
output p{margin:.6rem 0}
output pre{max-height:32rem;overflow-y:auto;background:var(--code);padding:.8rem;border-radius:7px}
.good{color:var(--ok);font-weight:700}.bad{color:var(--bad);font-weight:700}
output dl{display:grid;grid-template-columns:auto 1fr;gap:.1rem .8rem;margin:.4rem 0;font-size:.87rem}
output dt{color:var(--soft)}output dd{margin:0;overflow-wrap:anywhere}
[hidden]{display:none!important}
@media (min-width:75rem){.cols{grid-template-columns:minmax(0,1fr) minmax(0,30rem)}.samples>:first-child{margin-top:1rem}}
@media (max-width:56rem){
button.copy{min-height:26px}
body{display:block}
html{scroll-padding-top:4.2rem}
.bar{display:flex;position:sticky;top:0;z-index:5;align-items:center;justify-content:space-between;gap:1rem;padding:.5rem 1rem;background:var(--paper);border-bottom:1px solid var(--line)}
.bar strong{font-size:1.05rem}
.bar button{min-height:44px}
nav{display:none;position:fixed;inset:0 auto 0 0;width:min(20rem,84vw);height:100%;box-shadow:0 0 0 100vmax rgba(0,0,0,.45)}
nav:popover-open{display:block}
nav li a{padding:.55rem .5rem}
main{padding-top:1.4rem}
h1{font-size:1.6rem}
input,button.send,button.try{min-height:44px}
}
@media print{nav,.bar,.try,form,.copy{display:none!important}body{display:block}}
`
