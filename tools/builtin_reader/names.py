"""Invented names, numbers and dates: the only source of entities in the reader's training text.

Every name is put together from random syllables, random characters or random digits, so a fact in the training text
says nothing about anything that exists.  A short name can fall together with a real one by chance; the facts around
it are then still random.
"""

from __future__ import annotations

from random import Random

ONSETS = (
    "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl fr gr kh kr ky l ll m n ng ny ph pl pr qu r rh s sh "
    "sk sl sp "
    "st str t th tl tr ts tz v vr w wh x y z zh"
).split()
VOWELS = ("a e i o u a e i o a e i o u a e ai au ea ee ei ia ie io oa oo ou ue y ".split()) * 3 + list(
    "áéíóöüãıāøåńçşžčłš"
)
CODAS = ("n r l s t m k d g ng nd rt st ck sh th x z rn lm b p v ch ss ll tt nt rk ld rs n r l s t n r l".split()) + [
    ""
] * 50
SIMPLE = "b c d f g h j k l m n p r s t v w z br st t s m r l k".split()
PLACE_ENDS = (
    "a o i ia burg ville ton grad stan land pur abad shi ova ovo ek ice any heim stad dorf berg furt mouth ham by "
    "wick ford polis ira ena ado ara uru oma ang ing yang zhou tepe kent bad hausen sund vik holm field port dale wood"
).split()
PLACE_FRONTS = (
    "San Santa New Port Saint El La Los Le Al Upper Lower North South East West Fort Mount Lake Villa Bad Puerto Nova "
    "Old Great Cape Rio Ust Nizhny Kota Ban Bandar Dar Tel Novo Sri Ain Sidi Oued Xi Nova São"
).split()
PLACE_BACKS = (
    "City|Islands|Republic|Province|Region|District|County|State|Island|Valley|Hills|Beach|Springs|Bay|Park|Heights|"
    "Oblast|Governorate|Department|Prefecture|Kingdom|Federation|Territory|del Norte|de la Cruz|am See|upon Tarn|River"
).split("|")
WORDS = (
    "silent harvest winter crown river shadow glass tower broken mirror summer night garden empire stone dream lost "
    "paper letter golden machine island ghost midnight train crimson wolf hidden door last king secret blue mountain "
    "burning bridge strange love dark water wild horse little soldier red moon final hour lonely road black "
    "queen white "
    "storm cold heart long journey bitter song empty house second life first light perfect day bright star iron fist "
    "sweet revenge angel devil city forest ocean desert street school war peace time world child mother father brother"
).split()
KINDS = (
    "country city film book river company person language currency team event school mountain station project bridge "
    "album song game ship species disease law party festival museum hospital airport lake island road building weapon "
    "instrument dish drug theory award war region writer actor planet series painting club venue sport vehicle device"
).split()
COMMON_HAN = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后"
    "多定行学法所民得经"
    "十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天"
    "政四日那社义事平形"
    "相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想"
    "已通并提直题党程展"
    "五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区"
    "强放决西被干做必战"
    "先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美"
    "再采转更单风切打白"
    "教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记"
    "需段研界拉林律叫且"
    "究观越织装影算低持音众书布复容儿须际商非验连断深难近矿千周委素技备半办青省列习响约支般史感劳便团往酸历市克何"
    "除消构府称太准精值"
    "号率族维划选标写存候毛亲快效斯院查江型眼王按格养易置派层片始却专状育厂京识适属圆包火住调满县局照参红细引听该"
    "铁价严李刘陈杨赵黄"
    "吴徐孙胡朱郭罗梁宋郑谢韩唐冯董萧曹袁邓傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田姜范方任廖邹熊金陆郝孔崔"
    "康邱秦邵侯孟龙"
    "赛乒乓球馆体育奥运亚杭州泳跑跳射击击剑拳跆篮排足网羽棒垒橄榄举摔柔道男女军冠亚季奖牌教练裁判志愿幕式歌吉祥物"
    "宁波绍温湖嘉兴"
    "重庆津沪浙苏皖闽赣鲁豫鄂湘粤桂琼川贵云陕甘青藏疆蒙辽吉黑台港澳街镇乡村湾桥塔寺楼站洲岛峰河湖伊藤佐田井村木森"
    "美奈健太郎一郎"
)
HAN_ENDS = (
    "市 县 区 省 镇 街道 大学 公司 集团 体育馆 体育中心 比赛 项目 活动 运动会 委员会 队 奖 博物馆 机场 大桥 医院 "
    "研究所 公园 中学 "
    "系统 机器人 无人机 技术 平台 仪式 决赛 杯 车 号 馆 组 会 国 语 路 山 江"
).split()


def _rare_han() -> str:
    pairs = (bytes((lead, last)) for lead in range(0xB0, 0xD7) for last in range(0xA1, 0xFF))
    return b"".join(pairs).decode("gb2312")


RARE_HAN = _rare_han()
"""Characters of level 1 of GB 2312, by pronunciation."""

MONTHS = "January February March April May June July August September October November December".split()


class Names:
    """A machine that invents names.

    random: source of every draw.  pieces: further building blocks, usually the letter tokens of the tokenizer, so that
    each of them is met in training.
    """

    def __init__(self, random: Random, pieces: tuple[str, ...] = ()) -> None:
        self.random = random
        self.pieces = pieces

    def word(self, low: int = 2, high: int = 4) -> str:
        """A capitalised word of `low` to `high` syllables."""
        draw = self.random
        if self.pieces and draw.random() < 0.3:
            text = "".join(draw.choice(self.pieces) for _ in range(draw.randint(2, 3)))
        else:
            text = "".join(
                draw.choice(ONSETS if draw.random() < 0.4 else SIMPLE) + draw.choice(VOWELS) + draw.choice(CODAS)
                for _ in range(draw.randint(low, high))
            )
            if draw.random() < 0.2:
                text = draw.choice(VOWELS[:9]) + text
        return text[:1].upper() + text[1:14]

    def place(self) -> str:
        """A place name of one to three words."""
        draw, roll = self.random, self.random.random()
        name = self.word(1, 3)
        if draw.random() < 0.5:
            name = name.rstrip("aeiou") + draw.choice(PLACE_ENDS)
        if roll < 0.12:
            return f"{draw.choice(PLACE_FRONTS)} {name}"
        if roll < 0.22:
            return f"{name} {draw.choice(PLACE_BACKS)}"
        if roll < 0.27:
            return f"{name}-{self.word(1, 2)}"
        if roll < 0.31:
            return f"{name} {draw.choice(('and', 'of', 'de', 'al', 'the'))} {self.word(1, 3)}"
        if roll < 0.33:
            return f"{name} ({self.word(1, 2)})"
        return name if len(name) > 3 else name + draw.choice(PLACE_ENDS[3:])

    def person(self) -> str:
        """A personal name of two or three parts."""
        draw, roll = self.random, self.random.random()
        first, last = self.word(1, 2), self.word(1, 3)
        if roll < 0.1:
            return f"{first} {self.word(1, 1)[0]}. {last}"
        if roll < 0.15:
            return f"{first} {draw.choice(('van', 'de', 'von', 'bin', 'al', 'di', 'Mc', 'O' + chr(39)))} {last}"
        if roll < 0.2:
            return f"{first} {last}-{self.word(1, 2)}"
        if roll < 0.25:
            return f"{first} {last} {draw.choice(('Jr.', 'II', 'III'))}"
        return f"{first} {last}"

    def work(self) -> str:
        """A title with at least one invented word."""
        draw = self.random
        words = [draw.choice(WORDS).capitalize() for _ in range(draw.randint(0, 3))]
        words.insert(draw.randint(0, len(words)), self.word(1, 3))
        if len(words) > 1 and draw.random() < 0.3:
            words.insert(1, draw.choice(("of", "in", "and", "for", "the", "on", "to")))
        if draw.random() < 0.25:
            words.insert(0, draw.choice(("The", "A")))
        if draw.random() < 0.08:
            words.append(str(draw.randint(2, 9)))
        return " ".join(words)

    def thing(self) -> str:
        """A name of some other kind: a word in lower case, a phrase or a code."""
        draw, roll = self.random, self.random.random()
        if roll < 0.35:
            return self.word(2, 3)
        if roll < 0.6:
            return self.word(1, 3).lower() if draw.random() < 0.5 else f"{self.word(1, 3)} {draw.choice(KINDS)}"
        if roll < 0.75:
            return f"{draw.choice(WORDS)} {self.word(1, 2).lower()}"
        return self.code()

    def code(self) -> str:
        """Letters and digits such as `XQ-408` or `TFB`."""
        draw, roll = self.random, self.random.random()
        letters = "".join(draw.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(draw.randint(2, 3)))
        if roll < 0.45:
            return letters
        if roll < 0.6:
            return f"{letters}-{draw.randint(1, 999)}"
        if roll < 0.7:
            return "." + letters.lower()
        if roll < 0.85:
            return f"{self.word(1, 2)}/{self.word(2, 3)}" + ("_" + self.word(1, 2) if draw.random() < 0.2 else "")
        return f"+{draw.randint(1, 999)}" if draw.random() < 0.5 else f"UTC{draw.choice('+-')}{draw.randint(1, 12)}"

    def number(self) -> str:
        """A whole or decimal number of up to nine digits, sometimes with separators."""
        draw = self.random
        value = draw.randint(1, 10 ** draw.randint(1, 8))
        roll = draw.random()
        if roll < 0.15:
            return f"{value:,}"
        if roll < 0.3:
            return f"{value}.{draw.randint(0, 99)}"
        return str(value)

    def year(self) -> str:
        """A year between 1500 and 2029."""
        return str(self.random.choice((self.random.randint(1500, 2029), self.random.randint(1920, 2026))))

    def date(self) -> str:
        """A date in one of four spellings."""
        draw = self.random
        year, month, day = draw.randint(1900, 2026), draw.randint(1, 12), draw.randint(1, 28)
        return draw.choice(
            (
                f"{year:04d}-{month:02d}-{day:02d}",
                f"{day} {MONTHS[month - 1]} {year}",
                f"{MONTHS[month - 1]} {day}, {year}",
                f"{year:04d}-{month:02d}",
            )
        )

    def han(self, low: int = 2, high: int = 6) -> str:
        """A string of random Chinese characters, sometimes with an ending such as `大学`, or digits in it."""
        draw = self.random
        common = draw.random() < 0.6
        text = "".join(
            draw.choice(COMMON_HAN if common or draw.random() < 0.5 else RARE_HAN)
            for _ in range(draw.randint(low, high))
        )
        if draw.random() < 0.35:
            text += draw.choice(HAN_ENDS)
        roll = draw.random()
        if roll < 0.06:
            text = f"{draw.randint(1980, 2030)}年" + text
        elif roll < 0.1:
            text += str(draw.randint(1, 2500)) + draw.choice(("米", "公里", "号", ""))
        elif roll < 0.13:
            text = f"《{text}》"
        return text

    def han_sentence(self) -> str:
        """A longer string with a comma in it, as descriptions have."""
        return self.random.choice("，,、").join(self.han(3, 9) for _ in range(self.random.randint(2, 3)))

    def han_date(self) -> str:
        """A Chinese date, whole or in part."""
        draw = self.random
        year, month, day = draw.randint(1940, 2026), draw.randint(1, 12), draw.randint(1, 30)
        return draw.choice(
            (f"{year}年{month}月{day}日", f"{month}月{day}日", f"{year}年{month}月", f"{year}年", f"{day}日")
        )

    def han_measure(self) -> str:
        """A number with a Chinese or metric unit."""
        draw = self.random
        number = draw.choice((str(draw.randint(1, 900)), f"{draw.randint(1, 99)}.{draw.randint(0, 99)}"))
        return number + draw.choice(
            ("cm", "米", "公斤", "kg", "公里", "小时", "岁", "吨", "厘米", "分钟", "米/秒", "年")
        )
