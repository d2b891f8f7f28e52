/// The style sheet of the page: for light and dark mode, screens from 360 pixels of width, and
/// paper.
enum ReportStyle {
    static let css = """
        :root{color-scheme:light dark;--ground:#fbfbfa;--sheet:#fff;--ink:#1c2127;--soft:#5b6570;\
        --line:#dfe3e7;--shade:#00000038;--good:#1f8a5b;--bad:#c2412d;--other:#8a6d1d;--first:#2563b8;--second:#b4552d;\
        --dead:#9aa3ad;--skipped:#c9ced4;--invalid:#b9b29c;--open:#e4e0d4;--focus:#2563b8}
        @media(prefers-color-scheme:dark){:root{--ground:#14171a;--sheet:#1c2024;--ink:#e7eaed;\
        --soft:#9aa5b0;--line:#32393f;--shade:#000000b0;--good:#4cc38a;--bad:#f0806c;--other:#d9b44a;--first:#7ab0f5;\
        --second:#f0a27a;--dead:#717c87;--skipped:#4d565f;--invalid:#6b6552;--open:#3a3d34;--focus:#7ab0f5}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--ground);color:var(--ink);\
        font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
        main{max-width:1120px;margin:0 auto;padding:24px 20px 48px}
        header p{margin:0;color:var(--soft)}
        h1{font-size:25px;line-height:1.25;margin:4px 0 10px;max-width:46em;text-wrap:pretty}
        h2{font-size:18px;margin:32px 0 10px}h3{font-size:15px;margin:0}
        .status{display:inline-block;padding:1px 9px;border-radius:9px;font-weight:600;font-size:13px;\
        color:var(--sheet);background:var(--good)}.status.bad{background:var(--bad)}\
        .status.open{background:var(--other)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(122px,1fr));gap:10px;\
        margin:18px 0 0;padding:0;list-style:none}
        .tiles li{background:var(--sheet);border:1px solid var(--line);border-radius:8px;padding:9px 12px}
        .tiles b{display:block;font-size:21px;line-height:1.25;font-weight:650;\
        font-variant-numeric:tabular-nums}.tiles span{color:var(--soft);font-size:13px}
        .rows{display:flex;gap:1px;height:26px;margin:16px 0 8px;border-radius:6px;overflow:hidden}
        .rows span{flex:1 1 0;min-width:3px}
        .counts{font-size:14px;gap:2px 18px}.counts b{color:var(--ink);font-variant-numeric:tabular-nums}
        .cards{grid-template-columns:repeat(auto-fit,minmax(160px,1fr));margin-bottom:16px}
        .cards b{font-size:22px}.cards span{display:block}.cards .alarm b{color:var(--bad)}
        .note{color:var(--soft);font-size:12.5px}figure p.note{margin:4px 0 0}
        .box.fold{margin-top:14px}.fold>summary{font-size:15px;font-weight:600;color:var(--ink)}\
        .fold[open]>summary{margin-bottom:8px}.fold .scroll{max-height:none}
        .band{fill:var(--soft);fill-opacity:.16}.axis text.break{font-size:16px;fill:var(--ink)}
        .pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:14px}
        figure,.box{margin:0;background:var(--sheet);border:1px solid var(--line);border-radius:8px;\
        padding:12px 14px;min-width:0}
        figcaption{display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline;\
        justify-content:space-between;margin-bottom:6px}
        .legend{display:flex;flex-wrap:wrap;gap:2px 12px;margin:0;padding:0;list-style:none;\
        font-size:13px;color:var(--soft)}
        .key{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
        .chart{display:flex}.chart>svg{display:block;overflow:visible;flex:none}\
        .chart>svg[role]{flex:1;min-width:0;width:0;margin-right:4px}
        .axis text{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
        .grid{fill:none;stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
        .mark{stroke:var(--soft);stroke-dasharray:3 3}
        .curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round;\
        vector-effect:non-scaling-stroke}
        .area{stroke:none;fill-opacity:.75}
        .c-good{fill:var(--good);stroke:var(--good)}.c-bad{fill:var(--bad);stroke:var(--bad)}\
        .c-other{fill:var(--other);stroke:var(--other)}.c-first{fill:var(--first);stroke:var(--first)}\
        .c-second{fill:var(--second);stroke:var(--second)}.curve.curve{fill:none}.area.area{stroke:none}
        .k-good{background:var(--good)}.k-bad{background:var(--bad)}.k-other{background:var(--other)}\
        .k-first{background:var(--first)}.k-second{background:var(--second)}.k-dead{background:var(--dead)}\
        .k-skipped{background:var(--skipped)}.k-invalid{background:var(--invalid)}\
        .k-open{background:repeating-linear-gradient(135deg,var(--open) 0 5px,var(--line) 5px 8px)}
        .c-dead{fill:var(--dead);stroke:var(--dead)}
        details{margin-top:8px;font-size:13px}summary{cursor:pointer;color:var(--soft)}
        details .scroll{max-height:260px;overflow:auto}
        .scroll,.nights{background:linear-gradient(90deg,var(--sheet) 30%,transparent) 0 0/40px 100%,\
        linear-gradient(270deg,var(--sheet) 30%,transparent) 100% 0/40px 100%,\
        linear-gradient(90deg,var(--shade),transparent) 0 0/12px 100%,\
        linear-gradient(270deg,var(--shade),transparent) 100% 0/12px 100%,var(--sheet);\
        background-repeat:no-repeat;background-attachment:local,local,scroll,scroll,scroll}
        .scroll{overflow-x:auto}.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--focus);\
        outline-offset:2px}
        table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
        th,td{padding:4px 10px 4px 0;text-align:left;border-bottom:1px solid var(--line);\
        vertical-align:top}th{font-weight:600;font-size:13px;color:var(--soft)}
        th.n,td.n{text-align:right;white-space:nowrap;padding-right:20px}.share .n{text-align:right;white-space:nowrap}\
        td{white-space:nowrap}td.w{white-space:normal;min-width:15em;overflow-wrap:anywhere}tbody tr:last-child td{border-bottom:0}
        .o{white-space:nowrap}
        @media(max-width:560px){table{font-size:13px}th,td{padding-right:8px}th.n,td.n{padding-right:10px}\
        th.n{white-space:normal}td.w{min-width:11em}\
        .stack thead{display:none}.stack tr{display:block;padding:6px 0;border-bottom:1px solid var(--line)}\
        .stack tr:last-child{border-bottom:0}.stack td,.stack td.n,.stack td.w{display:flex;gap:10px;\
        justify-content:space-between;padding:1px 0;border:0;text-align:right;white-space:normal;\
        overflow-wrap:anywhere;min-width:0}.stack td:empty{display:none}\
        .stack td::before{content:attr(data-label);color:var(--soft);text-align:left;flex:none;max-width:45%}\
        .stack td:first-child{font-weight:600}\
        dl{grid-template-columns:1fr}dt{margin-top:4px}}
        dl{display:grid;grid-template-columns:minmax(110px,max-content) 1fr;gap:3px 16px;margin:0}
        dl.facts{margin:0 0 4px;font-size:14px}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
        code{display:block;background:var(--ground);border:1px solid var(--line);border-radius:6px;\
        padding:8px 10px;font:13px/1.5 ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere;\
        white-space:pre-wrap;margin:0 0 12px}code:last-child{margin:0}
        .share{display:grid;grid-template-columns:fit-content(210px) minmax(80px,1fr) 64px;gap:6px 12px;\
        align-items:center;margin:0;padding:0;list-style:none}
        .share li{display:contents}.share .bar{height:12px;border-radius:3px;background:var(--first);\
        min-width:2px}
        .ones{grid-template-columns:minmax(0,1fr);margin-bottom:14px}.spans{display:grid;\
        grid-template-columns:fit-content(140px) minmax(80px,1fr) fit-content(45%);\
        gap:8px 12px;align-items:center;margin:0 0 8px;padding:0;list-style:none}.spans li{display:contents}\
        .spans b{overflow-wrap:anywhere}.span{position:relative;height:20px;background:var(--ground);border-radius:3px}\
        .span u,.span em,.span i{position:absolute;top:0;bottom:0}.span u{top:8px;bottom:8px;min-width:2px;background:var(--first)}\
        .span em{width:8px;top:6px;bottom:6px;margin-left:-4px;border-radius:4px;background:var(--first)}\
        .span i{width:1px;background:var(--soft)}.faint .span u,.faint .span em{background:var(--dead)}
        @media(max-width:560px){.spans{grid-template-columns:minmax(0,1fr);gap:2px}.spans li+li b{margin-top:10px}}
        figure p,.box p{margin:0 0 8px}.box p:last-child{margin:0}
        footer{margin-top:36px;color:var(--soft);font-size:13px}
        @media print{:root{color-scheme:light;--ground:#fff;--sheet:#fff;--ink:#000;--soft:#444;\
        --line:#bbb;--good:#1f8a5b;--bad:#c2412d;--other:#8a6d1d;--first:#2563b8;--second:#b4552d}\
        body{font-size:12px}main{padding:0;max-width:none}figure,.box,.tiles li,tr{break-inside:avoid}h2{break-after:avoid}\
        details:not([open]){display:none}.scroll{overflow:visible}*{print-color-adjust:exact}}

        """

    /// Additional styles for the page about many nights.
    static let nights = """
        main{max-width:1360px}.chart svg svg{overflow:visible}
        .points{stroke-width:6;stroke-opacity:.75}@media(prefers-color-scheme:dark){.points{stroke-opacity:.9}}\
        .key.dot{width:6px;height:6px;border-radius:3px;margin-bottom:2px;opacity:.8}.bars{stroke-width:3;stroke-linecap:butt}
        .pair figure:last-child:nth-child(odd){grid-column:1/-1}
        a{color:var(--first);text-underline-offset:2px}
        a:focus-visible,.nights:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
        .months{display:flex;flex-wrap:wrap;gap:4px 14px;margin:0 0 10px;padding:0;list-style:none;\
        font-size:14px}
        .nights{max-height:80vh;overflow:auto;border:1px solid var(--line);\
        border-radius:8px}
        .nights table{border-collapse:separate;border-spacing:0;font-size:12.5px}
        .nights th{font-size:inherit}.nights th,.nights td{padding:3px 10px 3px 0;text-align:right;white-space:nowrap}
        .nights th:first-child,.nights td:nth-child(-n+3),.nights th:nth-child(-n+3){text-align:left}
        .nights th:first-child{padding-left:12px;position:sticky;left:0;background:var(--sheet);z-index:1;\
        font-weight:400;color:var(--ink)}
        .nights td:nth-child(2){white-space:normal;overflow-wrap:anywhere;min-width:11em;max-width:20em}
        .nights td p{margin:0;white-space:normal;overflow-wrap:anywhere;max-width:min(70em,72vw)}
        .nights td.x{background:color-mix(in srgb,var(--other) 22%,transparent);font-weight:650}
        .unusual ul{margin:0;padding-left:20px}.unusual li{overflow-wrap:anywhere}
        .swipe{display:none;margin:0 0 6px}@media(max-width:1000px){.swipe{display:block}}
        .nights td.b{color:var(--bad);font-weight:650}
        .nights thead th,.nights thead th:first-child{position:sticky;top:0;background:var(--sheet);\
        color:var(--soft);font-weight:600;padding-top:8px;padding-bottom:6px;z-index:2}
        .nights thead th:first-child{z-index:3}
        .nights .m th{background:var(--ground);color:var(--soft);padding:6px 12px;z-index:0}
        .nights .m span{position:sticky;left:12px;scroll-margin-top:48px}.nights .m b{color:var(--ink)}
        .nights .status{font-size:12px}
        .nights tbody:not(:last-child) tr:last-child>*{border-bottom:1px solid var(--line)}
        @media(max-width:560px){.tiles b{font-size:17px;overflow-wrap:anywhere}}
        @media print{.nights{max-height:none;overflow:visible}.nights thead th{position:static}}

        """
}
