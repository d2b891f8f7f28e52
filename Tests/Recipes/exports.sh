# Sourced by docs/how-to/lists-from-elsewhere.md: the exports of services, and programs of databases that are
# not installed here. Each writes what its documentation shows, of the rows that the PostgreSQL server has.

# mysql --batch: tabs, NULL, and no quotes.
mysql() {
    [[ " $* " == *" --batch "* ]] || return 2
    psql app --no-align --pset=footer=off --pset=fieldsep=$'\t' --pset=null=NULL --command="${*: -1}"
}
# bq query: no more than 100 rows unless more are asked for.
bq() {
    [[ " $* " == *" --format=csv "* ]] || return 2
    local rows=100
    [[ " $* " =~ --max_rows=([0-9]+) ]] && rows=${BASH_REMATCH[1]}
    psql app --command="\copy (select * from (${*: -1}) as export limit $rows) to stdout (format csv, header)"
}
# snowsql: names in capitals, every field in quotes.
snowsql() {
    [[ " $* " == *" output_format=csv "* && " $* " == *" friendly=false "* ]] || return 2
    psql app --command="\copy ($2) to stdout (format csv, header, force_quote *)" | sed '1s/.*/\U&/'
}

# ten TEXT: ten of the simulator's tokens, each in place of TOKEN in a text.
ten() { head -n 10 apns/tokens.txt | while read -r token; do printf "${1//TOKEN/$token}"; done; }
# Excel on a computer whose language writes 1,5: a mark, semicolons, lines that end with a carriage return.
{ printf '\xef\xbb\xbfsep=;\r\ntoken;name\r\n' && ten 'TOKEN;Ann\r\n'; } >excel.csv
# OneSignal's export of users.
{
    echo 'id,identifier,session_count,language,timezone,game_version,device_os,device_type,device_model,tags,invalid_identifier'
    ten '0d9f3f5e-1c5a-4c2e-9d53-8b8f6a7d2c10,TOKEN,7,en,3600,1.2,17.1,0,"iPhone15,2","{""vip"":""1""}",f\n'
    echo '5a1c8be2-7d0c-4a4a-8f69-3f1f9f2f7c55,c-Xy_1:APA91bHPRgkF3JUikC4ENAHEeMrd41Zxv3hVZjC9KtT8OvPVGJ-hQMRKRrZuJAEcl7B338qju59zJMjw2DELjzEvxwYv7hH5Ynpc1ODQ0aT4U4OFEeco8ohsN5PjL1iC2dNtk2BAokeMCg2ZXKqpc8FXKmhX94kIxQ,3,de,3600,1.2,14,1,Pixel 8,{},f'
} >users.csv
gzip users.csv
# Airship: GET /api/channels.
{
    echo '{"channels":['
    ten '{"channel_id":"2f1b3a66-9a5f-4d9a-9a49-ef0c9b6a4c01","device_type":"ios","push_address":"TOKEN","opt_in":true,"tags":["a"]},\n'
    echo '{"channel_id":"70d2b2b4-0b0b-4a37-b1f4-7c1d5f6f0a02","device_type":"android","push_address":"c-Xy_1:APA91b","opt_in":true}],"next_page":null}'
} >channels.json
# Parse: the class _Installation.
{
    printf '{"results":['
    ten '{"objectId":"ykTZDZ3MJq","deviceType":"ios","deviceToken":"TOKEN","badge":0,"channels":["news"]},'
    printf '{"objectId":"a9ZkQ2rT1b","deviceType":"android","deviceToken":"c-Xy_1:APA91b"}]}'
} >_Installation.json
# Firebase: a Realtime Database into which the app writes both tokens.
{
    echo '{"devices":{'
    ten '"user-TOKEN":{"fcmToken":"c-Xy_1:APA91b","apnsToken":"TOKEN"},\n'
    echo '"user-android":{"fcmToken":"c-Xy_1:APA91b"}}}'
} >firebase.json
