"""Questions in Chinese from forms, for graphs whose relations have Chinese names: a small set of patterns."""

from __future__ import annotations

import random
from collections.abc import Callable

from kgqa_core.builders.questions.wording import WordedQuestion
from kgqa_core.datasets.derived.thesaurus import thesaurus
from kgqa_core.errors import FormError
from kgqa_core.logic import forms
from kgqa_core.logic.forms import Form, Step, Steps, elements
from kgqa_core.search.schema_profile import GraphProfile

_WHO = (
    "人",
    "者",
    "员",
    "家",
    "师",
    "父",
    "母",
    "妻",
    "夫",
    "子",
    "女",
    "友",
    "演",
    "长",
    "导演",
    "作者",
    "老师",
    "学生",
)
WHOLE = 0.5
"""Share of the paths whose relation has whole questions in the thesaurus that are worded by one of these."""
_WHERE = ("地", "地点", "国家", "城市", "籍", "籍贯", "出生地", "位置", "所在")
_WHEN = ("日期", "时间", "年份", "年", "生日")


class Chinese:
    """Words forms of one graph.  names: an entity's name by its key."""

    def __init__(self, profile: GraphProfile, names: Callable[[str], str]) -> None:
        self.profile, self.names = profile, names
        self.rng = random.Random(0)

    def write(self, form: Form, seed: str) -> WordedQuestion:
        """A question whose answer the form is.  Raises FormError for a form that this grammar does not write."""
        self.rng = random.Random(seed)
        return WordedQuestion(self._question(form), tuple(self.names(key) for key in elements(form).entities))

    def _question(self, form: Form) -> str:
        pick = self.rng.choice
        match form:
            case forms.Count(of=of):
                return pick(("{}有多少个？", "{}有几个？", "一共有多少个{}？", "{}的数量是多少？")).format(
                    self._noun(of)
                )
            case forms.Holds(of=forms.Join() as of, one=forms.Entity(key=key)):
                return pick(("{b}是{a}吗？", "{a}是{b}吗？", "{b}是不是{a}？")).format(
                    a=self._noun(of), b=self.names(key)
                )
            case forms.Holds(of=of, one=one) if of == one:
                return f"有没有{self._noun(of)}？"
            case forms.Greater(one=forms.Entity(key=a), other=forms.Entity(key=b), path=path, best=best):
                more = "更多" if best == "max" else "更少"
                return f"{self.names(a)}和{self.names(b)}哪个的{self._label(path)}{more}？"
            case forms.Join():
                return self._path(form)
        return pick(("{}是什么？", "{}有哪些？", "列出{}", "{}")).format(self._noun(form))

    def _path(self, form: forms.Join) -> str:
        pick, step = self.rng.choice, form.path[0]
        noun, label = self._noun(form), self._label((step,))
        entry = thesaurus().relation(self.profile.relations[step.relation].label)
        whole = () if entry is None else entry.ask if step.inverse else entry.back
        start = forms.Join(form.path[1:], form.of) if form.path[1:] else form.of
        if whole and self.rng.random() < WHOLE:
            return pick(whole).replace("<x>", self._noun(start)) + pick(("？", ""))
        if not step.inverse:
            x = self._noun(start)
            return pick(
                ("{r}是{x}的有哪些？", "{r}是{x}的是谁？", "谁的{r}是{x}？", "哪些的{r}是{x}？", "什么的{r}是{x}？",
                 "{n}有哪些？", "{x}是谁的{r}？", "以{x}为{r}的有哪些？")
            ).format(r=label, x=x, n=noun)  # fmt: skip
        frames: tuple[str, ...]
        if label.endswith(_WHO):
            frames = ("{}是谁？", "谁是{}？", "{}叫什么名字？", "{}是哪位？", "{}都有谁？", "{}", "请问{}是谁？")
        elif label.endswith(_WHEN):
            frames = ("{}是什么时候？", "{}是哪年？", "{}是多少？", "{}", "请问{}是什么时候？")
        elif label.endswith(_WHERE):
            frames = ("{}是哪里？", "{}在哪里？", "{}是什么？", "{}是什么地方？", "{}", "请问{}是哪里？")
        else:
            frames = ("{}是什么？", "{}有哪些？", "{}是啥？", "{}", "请问{}是什么？", "告诉我{}", "你知道{}是什么吗？")
        return pick(frames).format(noun)

    def _noun(self, form: Form) -> str:
        match form:
            case forms.Entity(key=key):
                return self.names(key)
            case forms.Class(key=key) if key in self.profile.types:
                return self.profile.types[key].label
            case forms.Join(path=(step, *rest), of=of, where=()):
                x = self._noun(forms.Join(tuple(rest), of) if rest else of)
                label = self._word(step)
                if step.inverse:
                    return f"{x}的{label}" if self.rng.random() < 0.9 else f"{x}{label}"
                return f"{label}是{x}的" + self.rng.choice(("东西", "事物", "对象"))
            case forms.And(parts=parts):
                return "并且".join(self._noun(part) for part in parts)
            case forms.Or(parts=parts):
                return "或者".join(self._noun(part) for part in parts)
            case forms.Minus(of=of, without=without):
                return f"除了{self._noun(without)}以外的{self._noun(of)}"
            case forms.Arg(best=best, of=of, path=path):
                return f"{self._noun(of)}中{self._label(path)}最{'多' if best == 'max' else '少'}的"
            case forms.Nth(n=n, best=best, of=of, path=path):
                return f"{self._noun(of)}中{self._label(path)}第{n}{'多' if best == 'max' else '少'}的"
        raise FormError(f"{form} has no Chinese wording")

    def _word(self, step: Step) -> str:
        """The label of a relation, or another noun for it."""
        label = self.profile.relations[step.relation].label
        entry = thesaurus().relation(label)
        return self.rng.choice((label, *entry.nouns)) if entry is not None and entry.nouns else label

    def _label(self, path: Steps) -> str:
        return "的".join(self.profile.relations[step.relation].label for step in path)
