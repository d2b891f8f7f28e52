# Sourced by docs/how-to/lists-from-elsewhere.md: the exports of services, and programs of databases that are
# not installed here. Each writes what its documentation shows, of the rows that the PostgreSQL server has. Each
# export has rows that must not be sent to; a recipe that keeps one of them has more than ten tokens.

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
# unwanted NUMBER TEXT: the token with that number after the ten, in place of TOKEN. It must not be sent to.
unwanted() { printf "${2//TOKEN/$(sed -n "$((10 + $1))p" apns/tokens.txt)}"; }
# Excel on a computer whose language writes 1,5: a mark, semicolons, lines that end with a carriage return.
{ printf '\xef\xbb\xbfsep=;\r\ntoken;name\r\n' && ten 'TOKEN;Ann\r\n'; } >excel.csv
# OneSignal's export of subscriptions: also people who opted out, Safari, macOS, Android and email.
{
    printf '%s,' id identifier session_count language timezone game_version device_os device_type device_model ad_id \
        tags last_active playtime amount_spent created_at invalid_identifier && echo badge_count
    id=0d9f3f5e-1c5a-4c2e-9d53-8b8f6a7d2c10
    seen=',"2025-11-03 08:12:45",610,0,"2024-05-02 17:30:01"'
    ten "$id,TOKEN,7,en,3600,1.2,17.1,0,\"iPhone15,2\",,\"{\"\"vip\"\":\"\"1\"\"}\"$seen,f,0\n"
    unwanted 1 "$id,TOKEN,7,en,3600,1.2,17.1,0,\"iPhone15,2\",,{}$seen,t,0\n"
    unwanted 2 "$id,TOKEN,2,en,3600,,17.1,7,Safari,,{}$seen,f,0\n"
    unwanted 3 "$id,TOKEN,2,en,3600,1.2,14.1,9,Mac,,{}$seen,f,0\n"
    fcm=c-Xy_1:APA91bHPRgkF3JUikC4ENAHEeMrd41Zxv3hVZjC9KtT8OvPVGJ-hQMRKRrZuJAEcl7B338qju59zJMjw2DELjzEvxwYv7hH5Ynpc1O
    echo "$id,${fcm}DQ0aT4U4OFEeco8ohsN5PjL1iC2dNtk2BAokeMCg2ZXKqpc8FXKmhX94kIxQ,3,de,3600,1.2,14,1,Pixel 8,,{}$seen,f,0"
    echo "$id,ann@example.com,3,de,3600,1.2,14,11,,,{}$seen,f,0"
} >users.csv
gzip users.csv
# Airship: GET /api/channels. Also people who opted out, or removed the app, and Android.
{
    echo '{"channels":['
    id='"channel_id":"2f1b3a66-9a5f-4d9a-9a49-ef0c9b6a4c01"'
    ten "{$id,\"device_type\":\"ios\",\"installed\":true,\"opt_in\":true,\"push_address\":\"TOKEN\",\"tags\":[\"a\"]},\n"
    unwanted 1 "{$id,\"device_type\":\"ios\",\"installed\":true,\"opt_in\":false,\"push_address\":\"TOKEN\"},\n"
    unwanted 2 "{$id,\"device_type\":\"ios\",\"installed\":false,\"opt_in\":true,\"push_address\":\"TOKEN\"},\n"
    echo "{$id,\"device_type\":\"ios\",\"installed\":true,\"opt_in\":false,\"push_address\":null},"
    echo "{$id,\"device_type\":\"android\",\"installed\":true,\"opt_in\":true,\"push_address\":\"c-Xy_1:APA91b\"}"
    echo '],"next_page":null,"ok":true}'
} >channels.json
# Parse: the class _Installation. Also people who did not subscribe, another app, a Mac, a device without a token.
{
    printf '{"results":['
    app='"appIdentifier":"com.example.Broadside"'
    ten "{\"deviceType\":\"ios\",$app,\"deviceToken\":\"TOKEN\",\"badge\":0,\"channels\":[\"sports\",\"news\"]},"
    unwanted 1 "{\"deviceType\":\"ios\",$app,\"deviceToken\":\"TOKEN\",\"channels\":[\"sports\"]},"
    unwanted 2 "{\"deviceType\":\"ios\",$app,\"deviceToken\":\"TOKEN\"},"
    unwanted 3 "{\"deviceType\":\"ios\",${app/Broadside/Beta},\"deviceToken\":\"TOKEN\",\"channels\":[\"news\"]},"
    unwanted 4 "{\"deviceType\":\"macos\",$app,\"deviceToken\":\"TOKEN\",\"channels\":[\"news\"]},"
    printf '%s' "{\"deviceType\":\"ios\",$app,\"channels\":[\"news\"]},"
    printf '%s' "{\"deviceType\":\"android\",$app,\"deviceToken\":\"c-Xy_1:APA91b\",\"channels\":[\"news\"]}]}"
} >_Installation.json
# Firebase: a Realtime Database into which the app writes both tokens, and who opted out.
{
    echo '{"devices":{'
    ten '"user-TOKEN":{"fcmToken":"c-Xy_1:APA91b","apnsToken":"TOKEN","optedOut":false},\n'
    unwanted 1 '"user-TOKEN":{"fcmToken":"c-Xy_1:APA91b","apnsToken":"TOKEN","optedOut":true},\n'
    echo '"user-android":{"fcmToken":"c-Xy_1:APA91b"}}}'
} >firebase.json
