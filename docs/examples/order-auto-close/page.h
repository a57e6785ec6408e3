/* SPDX-License-Identifier: MIT */
/* The page of the shop. It requests the open orders once a second. */
#ifndef PAGE_H
#define PAGE_H

static const char page_text[] =
	"<!doctype html><html lang=en><meta charset=utf-8>"
	"<meta name=viewport content='width=device-width'><title>Open orders</title>"
	"<style>:root{color-scheme:light dark}body{font:1rem system-ui;margin:2rem "
	"auto;max-width:40rem;"
	"padding:0 "
	"1rem}table{border-collapse:collapse;width:100%}td,th{padding:.4rem;text-align:left;"
	"border-bottom:1px solid #8888}button{font:inherit;padding:.3rem .8rem}#state{color:#b00}"
	"</style><h1>Open orders</h1><p><button id=open>Open an order</button> "
	"<span id=state role=status></span><table><thead><tr><th>Order<th>Closes in<th></thead>"
	"<tbody id=orders></tbody></table><p id=none hidden>No order is open."
	"<script>"
	"const by=id=>document.getElementById(id);"
	"async function post(path){const r=await fetch(path,{method:'POST'});"
	"by('state').textContent=r.ok?'':r.status==409?'Too late: it is closed.':"
	"r.status==503?'The shop takes no orders now.':'The shop has failed.';await show()}"
	"async function show(){let r;try{r=await(await fetch('/orders')).json()}"
	"catch{by('state').textContent='The shop does not answer.';return}"
	"if(r.state!='open')by('state').textContent='The file of orders is '+r.state+'.';"
	"by('none').hidden=r.orders.length>0;"
	"by('orders').replaceChildren(...r.orders.map(o=>{const row=document.createElement('tr');"
	"const left=Math.max(0,Math.round(o.due_ns/1e9-Date.now()/1e3));"
	"row.insertCell().textContent=o.order;"
	"row.insertCell().textContent=Math.floor(left/60)+' min '+left%60+' s';"
	"const pay=document.createElement('button');pay.textContent='Pay';"
	"pay.onclick=()=>post('/pay/'+o.order);row.insertCell().append(pay);return row}))}"
	"by('open').onclick=()=>post('/orders');show();setInterval(show,1000)"
	"</script></html>\n";

#endif
